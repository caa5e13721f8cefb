/** Disks that fail while a test says so: system calls of a running service made to fail, and a filesystem that fills up. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProcess } from "../support/process.ts";

/** The answer ends the fault. */
export type Fault = (service: TestProcess) => Promise<() => Promise<unknown>>;

/**
 * strace attaches to the service and makes calls on its database fail: `how` is strace's own language, such as
 * `error=EIO`, or `retval=0` for a call that says that all is well and does nothing.
 */
export function failingCalls(calls: string, how: string): Fault {
  return async ({ pid, folder }) => {
    const files = ["errand.db", "errand.db-wal"].flatMap((name) => ["-P", join(folder, name)]);
    const what = ["-e", `trace=${calls}`, "-e", `inject=${calls}:${how}`];
    const strace = spawn("strace", ["-f", "-o", "/dev/null", ...files, ...what, "-p", String(pid)], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    const gone = once(strace, "exit");
    let said = "";
    await new Promise<void>((resolve, reject) => {
      strace.stderr.on("data", (chunk: Buffer) => {
        said += chunk.toString();
        if (said.includes("attached")) resolve();
      });
      strace.once("error", reject);
      strace.once("exit", () => reject(new Error(`strace ended: ${said}`)));
    });
    return async () => {
      strace.kill("SIGINT");
      await gone;
    };
  };
}

export interface SmallDisk {
  readonly folder: string;
  readonly fill: Fault;
  remove(): void;
}

/** A filesystem of its own in memory; null where this user may not mount one. */
export function mountSmallDisk(bytes: number): SmallDisk | null {
  const folder = mkdtempSync(join(tmpdir(), "errand-disk-"));
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${bytes}`, "tmpfs", folder]).status === 0;
  if (!mounted) {
    rmSync(folder, { recursive: true });
    return null;
  }
  const filler = join(folder, "filler");
  return {
    folder,
    fill() {
      const fd = openSync(filler, "w");
      try {
        for (;;) writeSync(fd, Buffer.alloc(4_096));
      } catch (error) {
        if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
      } finally {
        closeSync(fd);
      }
      return Promise.resolve(() => Promise.resolve(rmSync(filler)));
    },
    remove() {
      spawnSync("umount", ["-l", folder]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
