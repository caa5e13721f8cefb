/** Makes folders. */
import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/**
 * A folder and those above it, for their owner only; one that is there stays as it is. Node's own `recursive` tries without
 * end where the system answers ENOENT for a folder whose parent is there, as /proc and automounts do.
 */
export function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true) return;
    const parent = dirname(resolve(folder));
    if (existsSync(parent)) throw error;
    makeFolder(parent);
    makeFolder(folder);
  }
}
