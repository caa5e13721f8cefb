/**
 * Finds the compiled half of better-sqlite3, which no bundle can hold, and proves that it loads.
 *
 * The executable carries it as an asset, but the system loads shared libraries from files only, so it is written
 * to a private folder first. Each thread of the process must load this one file: a second copy of SQLite in the
 * same process would not know of the first one's POSIX locks and would drop them.
 */
import { createHash } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { getRawAsset, isSea } from "node:sea";
import { makeFolder } from "../../base/folder.ts";

/**
 * Loads the addon and returns its file, to be given to better-sqlite3 as `nativeBinding`, in this thread and in
 * every worker. `nativeFolder` is where the executable keeps the file (`<data>/native`); if that place forbids
 * it (read-only, noexec), private folders elsewhere are tried. Throws one error that names every place.
 */
export function loadAddon(nativeFolder: string): string {
  loaded ??= isSea() ? loadFromAsset(nativeFolder) : load(installedAddon());
  return loaded;
}

function loadFromAsset(nativeFolder: string): string {
  const addon = new Uint8Array(getRawAsset("better_sqlite3.node"));
  const name = `${createHash("sha256").update(addon).digest("hex")}.node`;
  const failures: string[] = [];
  for (const folder of [resolve(nativeFolder), ...otherFolders()]) {
    try {
      return load(writeOnce(privateFolder(folder), name, addon));
    } catch (error) {
      failures.push(`  ${folder}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  throw new Error(
    `Errand could not load its SQLite library. It needs one folder that is writable and not mounted noexec; tried\n${failures.join("\n")}`,
  );
}

function otherFolders(): string[] {
  const name = `errand-${process.getuid?.() ?? "user"}`;
  const { XDG_RUNTIME_DIR: runtime, HOME: home } = process.env;
  const folders = [join(tmpdir(), name), join("/dev/shm", name)];
  if (runtime) folders.push(join(runtime, "errand"));
  if (home) folders.push(join(home, ".cache", "errand"));
  return folders;
}

/** A folder only this user can write to: code is loaded from it, and /tmp is everyone's. */
function privateFolder(folder: string): string {
  makeFolder(folder);
  const found = lstatSync(folder);
  if (!found.isDirectory()) throw new Error("is not a folder");
  if (process.getuid && found.uid !== process.getuid()) throw new Error("belongs to another user");
  if (process.platform !== "win32" && (found.mode & 0o022) !== 0) throw new Error("others may write to it");
  return folder;
}

/** Appears whole or not at all, also when the power fails or two processes start at once. */
function writeOnce(folder: string, name: string, content: Uint8Array): string {
  const file = join(folder, name);
  if (existsSync(file) && readFileSync(file).equals(content)) return file;
  const temporary = join(folder, `${name}.${process.pid}.tmp`);
  try {
    const descriptor = openSync(temporary, "w", 0o700);
    try {
      writeFileSync(descriptor, content);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(temporary, file);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  return file;
}

/**
 * Looking for it takes milliseconds, so it is remembered; and a restore, which opens a file in a folder of any kind too,
 * must not leave a second copy beside that, nor load it.
 */
let loaded: string | null = null;

/** The addon of the installed package: one compiled on this machine if there is one, else the matching prebuild. */
function installedAddon(): string {
  const root = dirname(createRequire(import.meta.url).resolve("better-sqlite3/package.json"));
  const compiled = join(root, "build", "Release", "better_sqlite3.node");
  if (existsSync(compiled)) return compiled;
  const system = isMusl() ? "linuxmusl" : process.platform;
  return join(root, "prebuilds", `${system}-${process.arch}.node`);
}

/** Whether this Node runs on musl (Alpine): its loader is then mapped into the process. */
function isMusl(): boolean {
  return process.platform === "linux" && readFileSync("/proc/self/maps", "latin1").includes("/ld-musl-");
}

/** `require` rather than `process.dlopen`, so that better-sqlite3, which requires it too, gets the same instance. */
function load(file: string): string {
  createRequire(process.execPath)(file);
  return file;
}
