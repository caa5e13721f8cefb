/** Writes the log anew after a failed sync, once it is sure that what can be read of it is what was written. */
import { closeSync, fsyncSync, openSync, readSync, writeSync } from "node:fs";

/** https://sqlite.org/walformat.html: a header, then frames, each a header of its own and a page. */
const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
/** The magic number's last bit tells the byte order of the words that are summed. */
const MAGIC = 0x377f0682;

export const LOST_PART =
  "the disk has lost a part of the log; stop Errand and start it again: it goes on from what is left";

/**
 * After a failed sync the kernel takes the lost pages for clean: it may drop them from memory, and then older bytes of
 * the disk are read in their place. SQLite sums up the log when it opens it, but a checkpoint copies it unread. Here
 * the first `frames` frames are read and summed up, and the very bytes that were found right are written again, so that
 * they are dirty and the sync that follows means something. Throws when they are not right, or the disk still fails.
 * Nobody may write to the log meanwhile.
 */
export function rewriteLog(file: string, frames: number): void {
  const fd = openSync(file, "r+");
  try {
    const header = read(fd, HEADER_BYTES, 0);
    const length = HEADER_BYTES + frames * (FRAME_HEADER_BYTES + header.readUInt32BE(8));
    const log = read(fd, length, 0);
    if (soundFrames(log) < frames) throw new Error(LOST_PART);
    for (let at = 0; at < length; ) at += writeSync(fd, log, at, length - at, at);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function read(fd: number, length: number, from: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length; ) {
    const got = readSync(fd, bytes, at, length - at, from + at);
    if (got === 0) break;
    at += got;
  }
  return bytes;
}

/** How many frames from the first on carry the salts of the header and the sums of all that comes before them. */
function soundFrames(log: Buffer): number {
  const magic = log.readUInt32BE(0);
  if ((magic & ~1) !== MAGIC) return 0;
  const word =
    (magic & 1) === 1 ? (at: number) => log.readUInt32BE(at) : (at: number) => log.readUInt32LE(at);
  let first = 0;
  let second = 0;
  const sum = (from: number, to: number) => {
    for (let at = from; at < to; at += 8) {
      first = (first + word(at) + second) >>> 0;
      second = (second + word(at + 4) + first) >>> 0;
    }
  };
  const isSum = (at: number) => log.readUInt32BE(at) === first && log.readUInt32BE(at + 4) === second;

  sum(0, 24);
  if (!isSum(24)) return 0;
  const salts = log.subarray(16, 24);
  const frameBytes = FRAME_HEADER_BYTES + log.readUInt32BE(8);
  let sound = 0;
  for (let at = HEADER_BYTES; at + frameBytes <= log.length; at += frameBytes) {
    if (!salts.equals(log.subarray(at + 8, at + 16))) break;
    sum(at, at + 8);
    sum(at + FRAME_HEADER_BYTES, at + frameBytes);
    if (!isSum(at + 16)) break;
    sound += 1;
  }
  return sound;
}
