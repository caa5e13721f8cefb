/** What a disk may hold after a power cut: all that was synced, and any part of what was not. */
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type SystemCall, written } from "./syscalls.ts";

/** A disk writes sectors whole or not at all, and in any order. */
const SECTOR_BYTES = 512;
/** Where a write begins, and where a cut ends the file, is the last argument of the call. */
const LAST_NUMBER = /, (\d+)(?: <unfinished \.\.\.>|\)\s+= .*)$/;

interface Change {
  /** Null for a cut of the file at `at`. */
  readonly bytes: Buffer | null;
  readonly at: number;
  /** The system call has returned: a sync that begins now covers it. */
  done: boolean;
}

interface FileState {
  /** What a power cut leaves in any case. */
  stable: Buffer;
  /** In the order in which they were made. */
  pending: Change[];
  /** Its folder was synced since it was made, so that it is found again. */
  isNamed: boolean;
}

/** What is left of the changes that were not synced. */
export interface Tear {
  /** Whether a part of `bytes` bytes reached the disk. */
  readonly keeps: () => boolean;
  /** The size of such parts; Infinity for whole writes. */
  readonly bytes: number;
}

export const NOTHING_UNSYNCED: Tear = { keeps: () => false, bytes: Number.POSITIVE_INFINITY };

/** One of many: how much is kept, and in which pieces. */
export function randomTear(random: () => number): Tear {
  const share = random();
  const sizes = [SECTOR_BYTES, 4_096, Number.POSITIVE_INFINITY];
  return { keeps: () => random() < share, bytes: sizes[Math.floor(random() * sizes.length)]! };
}

/** Numbers from 0 to 1, the same for the same seed (xorshift, 32 bits). */
export function seeded(seed: number): () => number {
  let state = seed | 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

export class CrashDisk {
  private readonly folder: string;
  private readonly files = new Map<string, FileState>();
  private readonly others: [name: string, bytes: Buffer][] = [];
  /** What a sync that is under way will have made stable. */
  private readonly covered = new Map<SystemCall, readonly Change[]>();
  private readonly changes = new Map<SystemCall, Change>();

  /** `base` is a copy of `folder` from before the trace, on the disk as a whole. `names` are the files to follow. */
  constructor(folder: string, base: string, names: readonly string[]) {
    this.folder = folder;
    for (const name of names) this.files.set(name, { stable: Buffer.of(), pending: [], isNamed: false });
    for (const name of readdirSync(base)) {
      if (!statSync(join(base, name)).isFile()) continue;
      const bytes = readFileSync(join(base, name));
      const file = this.files.get(name);
      if (file === undefined) this.others.push([name, bytes]);
      else Object.assign(file, { stable: bytes, isNamed: true });
    }
  }

  begin(call: SystemCall): void {
    const file = this.fileOf(call);
    if (file === undefined) return;
    if (call.name === "pwrite64" || call.name === "ftruncate") {
      const at = Number(LAST_NUMBER.exec(call.text.slice(-80))?.[1]);
      const change = { bytes: call.name === "pwrite64" ? written(call) : null, at, done: false };
      file.pending.push(change);
      this.changes.set(call, change);
    } else if (call.name === "fsync" || call.name === "fdatasync") {
      this.covered.set(
        call,
        file.pending.filter(({ done }) => done),
      );
    } else if (call.name !== "openat") {
      throw new Error(`the replay does not know what ${call.name} does to ${call.path}`);
    }
  }

  end(call: SystemCall): void {
    if (call.path === this.folder && call.name === "fsync" && call.result === 0)
      for (const file of this.files.values()) file.isNamed = true;
    const file = this.fileOf(call);
    if (file === undefined) return;
    const change = this.changes.get(call);
    if (change !== undefined) change.done = true;
    this.changes.delete(call);
    const covered = new Set(this.covered.get(call));
    this.covered.delete(call);
    if (call.result !== 0 || covered.size === 0) return;
    for (const one of covered) file.stable = applied(file.stable, one);
    file.pending = file.pending.filter((one) => !covered.has(one));
  }

  /** Writes a state that a power cut at this moment may leave. */
  writeState(folder: string, tear: Tear): void {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (const [name, bytes] of this.others) writeFileSync(join(folder, name), bytes);
    for (const [name, { stable, pending, isNamed }] of this.files) {
      if (!isNamed && !tear.keeps()) continue;
      // A copy, since parts are written into it.
      let content: Buffer = Buffer.from(stable);
      for (const change of pending)
        for (const part of parts(change, tear.bytes)) if (tear.keeps()) content = applied(content, part);
      writeFileSync(join(folder, name), content);
    }
  }

  private fileOf(call: SystemCall): FileState | undefined {
    return call.path.startsWith(`${this.folder}/`) ? this.files.get(basename(call.path)) : undefined;
  }
}

function applied(content: Buffer, { bytes, at }: Pick<Change, "bytes" | "at">): Buffer {
  if (bytes === null) {
    return at <= content.length ? content.subarray(0, at) : grown(content, at);
  }
  const into = grown(content, at + bytes.length);
  bytes.copy(into, at);
  return into;
}

function grown(content: Buffer, length: number): Buffer {
  return length <= content.length ? content : Buffer.concat([content, Buffer.alloc(length - content.length)]);
}

/** A write in pieces that begin where the disk's do. */
function* parts({ bytes, at }: Change, size: number): Generator<Pick<Change, "bytes" | "at">> {
  if (bytes === null || size === Number.POSITIVE_INFINITY) return yield { bytes, at };
  for (let from = 0; from < bytes.length; ) {
    const to = Math.min(bytes.length, from + size - ((at + from) % size));
    yield { bytes: bytes.subarray(from, to), at: at + from };
    from = to;
  }
}
