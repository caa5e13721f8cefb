/** JSON Pointers: the examples of RFC 6901, and against a plain walk over parsed values. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { findAll, formatPointer, parsePointer } from "../../src/base/json-pointer.ts";

const find = (text: string, pointer: string) => findAll(text, [parsePointer(pointer)!])[0];

test("the examples of RFC 6901 §5", () => {
  const document = String.raw`{
    "foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5, "k\"l": 6, " ": 7, "m~n": 8
  }`;
  const expected: Record<string, string> = {
    "": document,
    "/foo": `["bar", "baz"]`,
    "/foo/0": `"bar"`,
    "/": "0",
    "/a~1b": "1",
    "/c%d": "2",
    "/e^f": "3",
    "/g|h": "4",
    "/i\\j": "5",
    '/k"l': "6",
    "/ ": "7",
    "/m~0n": "8",
  };
  const paths = Object.keys(expected).map((pointer) => parsePointer(pointer)!);
  assert.deepEqual(findAll(document, paths), Object.values(expected));
});

test("malformed pointers", () => {
  for (const pointer of ["a", "a/b", " /a", "/~", "/a~2", "/~~0", "#/a"])
    assert.equal(parsePointer(pointer), null, pointer);
  assert.deepEqual(parsePointer("/~01/~10//x"), ["~1", "/0", "", "x"]);
});

test("what is not there is not found, and items of arrays only by plain numbers", () => {
  const text = `{"list":[10,20],"null":null,"text":"abc"}`;
  for (const pointer of [
    "/x",
    "/list/2",
    "/list/-",
    "/list/01",
    "/list/+1",
    "/list/1.0",
    "/list/length",
    "/text/0",
    "/null/a",
  ])
    assert.equal(find(text, pointer), null, pointer);
  assert.equal(find(text, "/list/1"), "20");
  assert.equal(find(text, "/null"), "null");
});

test("bytes stay as they are", () => {
  const text = `{"a" : { "n":1.0,"big":9007199254740993, "t":"\\u00e9é" } ,"b":[ 1 , [ 2,{} ] ]}`;
  assert.equal(find(text, "/a"), `{ "n":1.0,"big":9007199254740993, "t":"\\u00e9é" }`);
  assert.equal(find(text, "/a/big"), "9007199254740993");
  assert.equal(find(text, "/b/1"), "[ 2,{} ]");
  assert.equal(find(text, "/b/1/1"), "{}");
});

test("of a doubled key the last one counts, with all that is in it", () => {
  const text = `{"a":{"x":1,"y":2},"a":{"y":3}}`;
  assert.deepEqual(findAll(text, [["a"], ["a", "x"], ["a", "y"]]), [`{"y":3}`, null, "3"]);
  assert.equal(find(`{"a":{"b":{"c":1}},"a":{}}`, "/a/b/c"), null);
});

test("keys that are written with escapes are found by what they say", () => {
  assert.equal(find(String.raw`{"\u0061\/b":1}`, "/a~1b"), "1");
});

test("very deep documents are no danger", () => {
  const deep = "[".repeat(200_000) + "]".repeat(200_000);
  assert.equal(find(`{"deep":${deep},"x":1}`, "/x"), "1");
  assert.equal(find(`{"deep":${deep}}`, "/deep"), deep);
  assert.equal(find(deep, `${"/0".repeat(500)}/1`), null);
});

test("finds in the text what a walk over the parsed value finds", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), fc.constantFrom(undefined, 1), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      // The oracle is the value after a round trip: -0 is 0 there.
      const places = [...walk(JSON.parse(text), [])];
      const found = findAll(
        text,
        places.map(({ path }) => parsePointer(formatPointer(path))!),
      );
      places.forEach(({ value: inner }, i) => assert.deepEqual(JSON.parse(found[i]!), inner));
    }),
  );
});

function* walk(value: unknown, path: string[]): Generator<{ path: string[]; value: unknown }> {
  yield { path, value };
  if (typeof value !== "object" || value === null) return;
  for (const [key, inner] of Object.entries(value)) yield* walk(inner, [...path, key]);
}
