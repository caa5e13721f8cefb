/** Which bytes are text. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { utf8Text } from "../../src/base/utf8.ts";

const read = (text: string) => utf8Text(Buffer.from(text));

test("text is text, with tabs, line ends and the colours of a terminal", () => {
  for (const text of ["", "a", "é☃\u{1f600}", "\t\r\n".repeat(100), "\u001b[0m", "\u001b[31mred\u001b[39m"])
    assert.equal(read(text), text);
});

test("bytes that are no UTF-8, that hold a NUL, or are control characters by more than a quarter are no text", () => {
  assert.equal(utf8Text(Buffer.from([0xff])), null);
  assert.equal(read("text\0"), null);
  assert.equal(read(`${"\u0001".repeat(26)}${"a".repeat(74)}`), null);
  assert.equal(read(`${"\u0001".repeat(25)}${"a".repeat(75)}`)?.length, 100);
});
