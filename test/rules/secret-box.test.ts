/** Secrets at rest: opened by their key only, and only unchanged. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { secretBox } from "../../src/base/secret-box.ts";

const box = secretBox("a key of more than thirty-two characters");

test("any text comes back, and never looks the same twice", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      const sealed = box.seal(text);
      assert.equal(box.open(sealed), text);
      assert.notEqual(box.seal(text), sealed);
    }),
  );
});

test("another key does not open it, nor does anything that was changed or cut", () => {
  const sealed = box.seal("whsec_secret");
  assert.throws(() => secretBox("another key of more than thirty-two").open(sealed));
  const bytes = Buffer.from(sealed, "base64");
  for (let i = 0; i < bytes.length; i++) {
    const changed = Buffer.from(bytes);
    changed[i]! ^= 1;
    assert.throws(() => box.open(changed.toString("base64")), `byte ${i}`);
    assert.throws(() => box.open(bytes.subarray(0, i).toString("base64")), `cut at ${i}`);
  }
});
