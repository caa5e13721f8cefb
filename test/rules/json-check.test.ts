/** isJson says of every text what JSON.parse says of it. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isJson } from "../../src/base/json-check.ts";

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Texts that are JSON, with every token and every form of it. */
const SOUND = [
  ..."0 -0 1.5 10 1e5 1E+05 -1.0e-3 true false null [] {}".split(" "),
  `""`,
  " [ 1 , 2 ] ",
  `{"a":{"b":[{}]},"a":null}`,
  "\t\r\n0\n",
  `[[[]],[{}],[""]]`,
  `"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00aF \u2028\ud800 é"`,
  `{"a b":[1,-2.5e3,"x",true,false,null,{"":[]}]}`,
];

/** What may stand where it should not. */
const ALPHABET = `{}[]",:\\u0123456789abefnrtls+-.eE \n\u0000\u001f\u00a0\ufeff/x`.split("").concat("");

describe("isJson", () => {
  test("what is JSON", () => {
    for (const text of SOUND) assert.equal(isJson(text), true, text);
  });

  test("what is none", () => {
    const texts = [
      "",
      " ",
      "01",
      "-",
      "1.",
      ".5",
      "1e",
      "+1",
      "NaN",
      "tru",
      "nulll",
      "[1,]",
      "[,1]",
      "{,}",
      "[1 2]",
    ];
    for (const text of [
      ...texts,
      "{1:2}",
      `{"a"}`,
      `{"a":}`,
      `{"a":1,}`,
      `"\u0001"`,
      `"\\x"`,
      `"\\u12g4"`,
      `"a`,
      `"\\`,
    ])
      assert.equal(isJson(text), false, text);
    for (const text of ["[}", "{]", "]", "}", "[[]", `{"a":[}`, "[]]", "1 1", "\ufeff1", "\u00a01", "'a'"])
      assert.equal(isJson(text), false, text);
  });

  test("each sound text cut off anywhere, and with any character put in, taken out or put in another's place", () => {
    for (const sound of SOUND)
      for (let at = 0; at <= sound.length; at += 1) {
        const cut = sound.slice(0, at);
        assert.equal(isJson(cut), parses(cut), JSON.stringify(cut));
        for (const char of ALPHABET)
          for (const rest of [sound.slice(at), sound.slice(at + 1)]) {
            const text = cut + char + rest;
            assert.equal(isJson(text), parses(text), JSON.stringify(text));
          }
      }
  });

  test("of any depth", () => {
    const deep = "[".repeat(500_000) + "]".repeat(500_000);
    assert.equal(isJson(deep), true);
    assert.equal(isJson(`${deep}]`), false);
    assert.equal(isJson(deep.slice(0, -1)), false);
  });
});
