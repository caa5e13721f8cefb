/** API keys: their form, their checksum, and what of them may be shown. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import { checksum, hashApiKey, hintOfKey, modeOfKey, newApiKey } from "../../src/accounts/api-key.ts";

import { hasValidChecksum } from "../support/keys.ts";

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

test("a new key names its mode and carries at least 160 random bits", () => {
  for (const mode of ["test", "live"] as const) {
    const keys = Array.from({ length: 200 }, () => newApiKey(mode));
    for (const key of keys) {
      assert.match(key, new RegExp(`^errand_${mode}_[0-9A-Za-z]{36}$`));
      assert.equal(modeOfKey(key), mode);
      assert.ok(hasValidChecksum(key));
    }
    assert.equal(new Set(keys).size, keys.length);
    const used = new Set(keys.flatMap((key) => Array.from(key.slice(12, -6))));
    assert.equal(used.size, 62, "every digit comes up");
  }
  assert.ok(30 * Math.log2(62) >= 160);
});

test("the checksum is the CRC32 of everything before it, base62, six characters", () => {
  // The check value of CRC-32/ISO-HDLC.
  assert.equal(crc32("123456789"), 0xcbf43926);
  const digits = checksum("123456789");
  assert.equal(digits.length, 6);
  assert.equal(
    Array.from(digits).reduce((sum, digit) => sum * 62 + DIGITS.indexOf(digit), 0),
    0xcbf43926,
  );
  assert.equal(checksum(""), "000000");
});

test("one changed character is noticed", () => {
  const key = newApiKey("live");
  for (let i = 12; i < key.length; i++) {
    const other = key[i] === "a" ? "b" : "a";
    assert.ok(!hasValidChecksum(key.slice(0, i) + other + key.slice(i + 1)));
  }
});

test("a key that is not well formed has no mode", () => {
  for (const text of [
    "",
    "errand_test_",
    "errand_test_short",
    `errand_prod_${"a".repeat(36)}`,
    `errand_test_${"a".repeat(35)}-`,
    ` errand_test_${"a".repeat(36)}`,
    `errand_test_${"a".repeat(36)}\n`,
  ])
    assert.equal(modeOfKey(text), null, text);
});

test("what is stored and shown gives no key away", () => {
  const key = newApiKey("test");
  assert.match(hashApiKey(key), /^[0-9a-f]{64}$/);
  assert.equal(hintOfKey(key), `${key.slice(0, 16)}…${key.slice(-4)}`);
});
