/** A filesystem in a file, which can be shut down while it is written to: nothing that was not on it by then comes after. */
import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const IMAGE_BYTES = 128 * 1024 * 1024;
/** EXT4_IOC_SHUTDOWN in the kernel's fs/ext4/ext4.h: _IOR('X', 125, __u32). */
const SHUTDOWN = 0x8004587d;
/** What becomes of the filesystem's own journal: written out first, or left as far as it came. */
const JOURNAL = { flushed: 1, dropped: 2 } as const;

export interface LoopDisk {
  readonly folder: string;
  /** From now on every write and sync on it fails, and what it had only in memory is lost. */
  shutDown(journal: keyof typeof JOURNAL): void;
  /** Unmounts and mounts again what reached the image. Nobody may have a file open on it. */
  remount(): void;
  remove(): void;
}

/** The disk, or why there is none here. */
export function mountLoopDisk(): LoopDisk | string {
  const root = mkdtempSync(join(tmpdir(), "errand-loop-"));
  const image = join(root, "image");
  const folder = join(root, "mounted");
  const disk = {
    folder,
    shutDown: (journal: keyof typeof JOURNAL) => command(...shutDownCommand(folder, JOURNAL[journal])),
    remount() {
      command("umount", folder);
      command("mount", "-o", "loop", image, folder);
    },
    remove() {
      // The loop device is let go of with the mount.
      spawnSync("umount", ["-l", folder]);
      rmSync(root, { recursive: true, force: true });
    },
  };
  try {
    closeSync(openSync(image, "w"));
    truncateSync(image, IMAGE_BYTES);
    mkdirSync(folder);
    command("mkfs.ext4", "-q", image);
    command("mount", "-o", "loop", image, folder);
    // Whether this kernel can do it, and there is a language here to ask it in.
    disk.shutDown("dropped");
    disk.remount();
    return disk;
  } catch (error) {
    disk.remove();
    return `a filesystem cannot be mounted and shut down here: ${String(error)}`;
  }
}

/** Node cannot make this system call by itself. */
function shutDownCommand(folder: string, flag: number): [string, ...string[]] {
  const isThere = (name: string) => spawnSync(name, ["--version"]).status === 0;
  if (isThere("python3")) {
    const code = `import fcntl, os, struct; fcntl.ioctl(os.open("${folder}", os.O_RDONLY), ${SHUTDOWN}, struct.pack("I", ${flag}))`;
    return ["python3", "-c", code];
  }
  const code = `open(my $f, "<", "${folder}") or die $!; my $flag = pack("L", ${flag}); ioctl($f, ${SHUTDOWN}, $flag) or die $!`;
  return ["perl", "-e", code];
}

function command(name: string, ...args: string[]): void {
  const { status, error, stderr } = spawnSync(name, args, { encoding: "utf8" });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${name} ended with ${status}: ${stderr.trim()}`);
}
