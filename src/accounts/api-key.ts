/** API keys: random, recognisable, checkable offline by a secret scanner; only their hash is ever stored. */
import { hash, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import { MODES, type Mode } from "../base/tenant.ts";

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** 30 base62 characters: 178 random bits. */
const RANDOM_LENGTH = 30;
const CHECKSUM_LENGTH = 6;
const FORM = /^errand_(test|live)_([0-9A-Za-z]{20,200})$/;

export function newApiKey(mode: Mode): string {
  const body = `errand_${mode}_${randomBase62(RANDOM_LENGTH)}`;
  return body + checksum(body);
}

/** CRC32 (as in zlib) of everything before it, base62, six characters, most significant first. */
export function checksum(text: string): string {
  let rest = crc32(text);
  let digits = "";
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    digits = BASE62[rest % 62] + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}

/** The mode of a well-formed key, or null. A key that the operator chose (ERRAND_TEST_KEY) has no checksum to check. */
export function modeOfKey(key: string): Mode | null {
  const mode = FORM.exec(key)?.[1];
  return MODES.find((known) => known === mode) ?? null;
}

/** SHA-256, hex. The keys carry at least 119 bits of chance, so a slow hash would protect nothing more. */
export function hashApiKey(key: string): string {
  return hash("sha256", key);
}

/** Enough of a key to tell it from others in a list, and too little to use it. */
export function hintOfKey(key: string): string {
  return `${key.slice(0, "errand_test_".length + 4)}…${key.slice(-4)}`;
}

function randomBase62(length: number): string {
  let text = "";
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      // 248 is the largest multiple of 62 in a byte: higher values would favour the first digits.
      if (byte < 248 && text.length < length) text += BASE62[byte % 62];
    }
  }
  return text;
}
