/** A disk whose syncs fail or wait when a test says so: node:fs's fdatasync, swapped under the store. */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

export interface TestDisk {
  /** Syncs asked for so far. */
  syncs: number;
  /** Null: syncs succeed. */
  failWith: Error | null;
  /** The sync waits for it before it is done. */
  wait: Promise<unknown> | null;
  restore(): void;
}

/** Affects the whole process: one at a time. */
export function takeDisk(): TestDisk {
  const real = fs.fdatasync;
  const disk = {
    syncs: 0,
    failWith: null as Error | null,
    wait: null as Promise<unknown> | null,
    restore() {
      fs.fdatasync = real;
      syncBuiltinESMExports();
    },
  };
  const replaced = (fd: number, callback: fs.NoParamCallback) => {
    disk.syncs += 1;
    const { failWith, wait } = disk;
    void Promise.resolve(wait).then(() => {
      if (failWith === null) real(fd, callback);
      else setImmediate(() => callback(failWith));
    });
  };
  fs.fdatasync = Object.assign(replaced, { __promisify__: real.__promisify__ });
  syncBuiltinESMExports();
  return disk;
}

export function ioError(): Error {
  return Object.assign(new Error("EIO: i/o error, fdatasync"), { code: "EIO" });
}
