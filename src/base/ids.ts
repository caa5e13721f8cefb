/** TypeIDs (prefix, `_`, base32 of a UUIDv7): unique, sortable by creation, readable as what they name. */
import { randomBytes } from "node:crypto";

export type IdPrefix = "job" | "sch" | "key" | "acct" | "req" | "sec" | "cb";

/** Crockford's base32 in lower case, as the TypeID specification 0.3 takes it. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const SUFFIX = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/;

/** Two characters for each ten bits. */
const PAIRS = Array.from({ length: 1_024 }, (_, bits) => ALPHABET[bits >>> 5]! + ALPHABET[bits & 31]!);

/** Random bytes are drawn in bulk: a call to the kernel for each id would cost more than the rest of it. */
const POOL_BYTES = 5_000;
/** What follows the time: two bytes of version and counter, eight of variant and chance. */
const ID_BYTES = 10;
let pool = Buffer.alloc(0);
let used = 0;

let lastMs = 0;
let lastMsText = encodeTime(0);
let counter = 0;

/**
 * A new id. Ids made by one process sort in the order of creation: those of one millisecond count up in the 12 bits
 * after the time (RFC 9562 §6.2, method 1), and a clock that goes back does not take the order with it.
 */
export function newId(prefix: IdPrefix, nowMs: number): string {
  counter += 1;
  if (nowMs > lastMs || counter > 0xfff) {
    lastMs = Math.max(nowMs, lastMs + 1);
    lastMsText = encodeTime(lastMs);
    counter = 0;
  }
  if (used + ID_BYTES > pool.length) {
    pool = randomBytes(POOL_BYTES);
    used = 0;
  }
  // Version and counter, then variant and 62 random bits, written over the random bytes where they lie.
  pool[used] = 0x70 | (counter >>> 8);
  pool[used + 1] = counter & 0xff;
  pool[used + 2] = (pool[used + 2]! & 0x3f) | 0x80;
  const id = `${prefix}_${lastMsText}${encodeFive(pool, used)}${encodeFive(pool, used + 5)}`;
  used += ID_BYTES;
  return id;
}

/** The 48 bits of the time as ten characters, two zero bits first. */
function encodeTime(ms: number): string {
  let text = "";
  for (let divisor = 2 ** 45; divisor >= 1; divisor /= 32) text += ALPHABET[Math.floor(ms / divisor) % 32];
  return text;
}

/** Five bytes as eight characters. */
function encodeFive(bytes: Buffer, at: number): string {
  const high = (bytes[at]! << 12) | (bytes[at + 1]! << 4) | (bytes[at + 2]! >>> 4);
  const low = ((bytes[at + 2]! & 15) << 16) | (bytes[at + 3]! << 8) | bytes[at + 4]!;
  return PAIRS[high >>> 10]! + PAIRS[high & 1023]! + PAIRS[low >>> 10]! + PAIRS[low & 1023]!;
}

export function isId(prefix: IdPrefix, text: string): boolean {
  return text.startsWith(`${prefix}_`) && SUFFIX.test(text.slice(prefix.length + 1));
}
