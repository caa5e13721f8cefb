/** JSON whose payloads keep their bytes. The oracle is JSON.parse. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "fast-check";
import { JsonFault, MAX_DEPTH, parseJson, RawJson, stringify } from "../../src/base/json.ts";

const rawAt = (path: string) => (given: string) => given === path;
const nothingRaw = () => false;

function rawText(text: string, path: string): string {
  const value = path
    .split("/")
    .reduce<any>((inner, key) => (key === "[]" ? inner[0] : inner[key]), parseJson(text, rawAt(path)));
  assert.ok(value instanceof RawJson, "the value is raw");
  return value.text;
}

describe("raw values", () => {
  const bytes = [
    `{"b":1.0,"a":9007199254740993}`,
    `-0`,
    `1e400`,
    `"\\u00e9\\ud800 \\"}] é"`,
    `{"a":1,"a":2}`,
    `{"__proto__":{"x":1}}`,
    `[ 1 ,\t2\n]`,
    `null`,
    `[]`,
    `{}`,
    `""`,
  ];
  for (const text of bytes) {
    test(`keep their bytes: ${text.replaceAll("\n", "\\n")}`, () => {
      assert.equal(rawText(`{"payload": ${text} }`, "payload"), text);
      assert.equal(rawText(`{"x":[{"y":"}"}],"payload":${text},"z":[]}`, "payload"), text);
      assert.equal(rawText(`{"jobs":[{"payload":${text}}]}`, "jobs/[]/payload"), text);
    });
  }

  test("are written as they were read", () => {
    const text = `{"url":"x","payload":{"a":1.0,"b":[1e2]},"tags":["a"]}`;
    assert.equal(stringify(parseJson(text, rawAt("payload"))), text);
  });

  test("are not taken for each other, nor for a string that looks like their mark", () => {
    const list = ["1.0", "2.0", "3.0"].map((text) => new RawJson(text));
    assert.equal(stringify({ a: list, b: "raw:x" }), `{"a":[1.0,2.0,3.0],"b":"raw:x"}`);
  });
});

describe("what is refused", () => {
  test("a key twice in one object, also when it is written differently", () => {
    for (const text of [`{"a":1,"a":1}`, `{"a":{"b":1,"\\u0062":2}}`])
      assert.throws(() => parseJson(text, nothingRaw), /appears twice/);
  });

  test(`more than ${MAX_DEPTH} levels, in a raw value too`, () => {
    const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
    const deep = (levels: number) => `{"payload":${nested(levels - 1)}}`;
    for (const isRaw of [rawAt("payload"), nothingRaw]) {
      parseJson(deep(MAX_DEPTH), isRaw);
      assert.throws(() => parseJson(deep(MAX_DEPTH + 1), isRaw), /deeper than 64/);
    }
    assert.throws(() => parseJson(nested(100_000), nothingRaw), JsonFault);
  });

  test("what is not JSON", () => {
    for (const text of ["", "{", "{'a':1}", "[1,]", "01", "\ufeff{}", "NaN", `{"a":1}x`])
      assert.throws(() => parseJson(text, nothingRaw), JsonFault);
  });
});

test("over 1,000 members of one object, but in a raw value, and in what Errand itself has said", () => {
  const object = (members: number) => `{${Array.from({ length: members }, (_, i) => `"k${i}":0`).join(",")}}`;
  const isPayload = (path: string) => path === "payload";
  parseJson(object(1_000), isPayload);
  for (const text of [object(1_001), `{"a":[${object(1_001)}]}`])
    assert.throws(() => parseJson(text, isPayload), /more than 1000 members/);
  parseJson(`{"payload":${object(1_001)}}`, isPayload);
  parseJson(object(1_001), isPayload, Number.POSITIVE_INFINITY);
});

test("no place is asked about by a path that is longer than any place: a long key would be read again for each below it", () => {
  const asked: string[] = [];
  const isRaw = (path: string) => asked.push(path) > 0 && path === "a/[]/payload";
  const long = "k".repeat(10_000);
  const text = `{"a":[{"payload":1.0},{"${long}":{"payload":[1,{"x":2.0}]}}],"${long}":{"y":{"z":1}},"payload":3}`;
  assert.equal(stringify(parseJson(text, isRaw)), text.replace("2.0", "2"));
  assert.ok(asked.includes("payload"));
  assert.ok(asked.every((path) => path.length < 500));
});

test("__proto__ and its like are keys as any other, and touch no prototype", () => {
  const text = `{"__proto__":{"x":1},"constructor":2,"payload":1.0,"toString":{"__proto__":[3.0]}}`;
  for (const isRaw of [nothingRaw, rawAt("payload"), rawAt("__proto__"), rawAt("toString/__proto__")]) {
    const value = parseJson(text, isRaw) as object;
    assert.equal(Object.getPrototypeOf(value), Object.prototype);
    assert.deepEqual(Object.keys(value), ["__proto__", "constructor", "payload", "toString"]);
    assert.equal(stringify(value).startsWith(`{"__proto__":{"x":1},"constructor":2`), true);
  }
  assert.equal(({} as { x?: number }).x, undefined);
});

test("any JSON reads as JSON.parse reads it, and any value may be raw", () => {
  const spaces = fc.constantFrom("", " ", "\n\t", "\r\n ");
  fc.assert(
    fc.property(
      fc.json({ maxDepth: 6 }),
      spaces,
      fc.constantFrom("payload", "__proto__", "é"),
      (json, space, key) => {
        const text = `{"before":[{"a":"]"}],${space}${JSON.stringify(key)}${space}:${space}${json}${space},"after":${json}}`;
        let expected: any;
        try {
          expected = parseJson(text, nothingRaw);
        } catch (error) {
          // fast-check may name a key twice.
          assert.match(String(error), /twice/);
          return;
        }
        assert.deepEqual(expected, JSON.parse(text));
        const value = parseJson(text, rawAt(key)) as any;
        const raw = Object.getOwnPropertyDescriptor(value, key)?.value;
        assert.ok(raw instanceof RawJson);
        assert.equal(raw.text, json.trim());
        assert.deepEqual(value.after, expected.after);
      },
    ),
    { numRuns: 2_000 },
  );
});

test("any text either reads as JSON.parse reads it, or is refused with a JsonFault", () => {
  const pieces = fc.constantFrom(
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    "\\",
    '"a"',
    '"payload"',
    "1",
    "-",
    ".5",
    "e",
    "true",
    "null",
    " ",
    "\n",
    "\\u0041",
    "é",
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 14 }), (parts) => {
      const text = parts.join("");
      let value: unknown;
      try {
        value = parseJson(text, rawAt("payload"));
      } catch (error) {
        assert.ok(error instanceof JsonFault);
        return;
      }
      assert.deepEqual(JSON.parse(stringify(value)), JSON.parse(text));
    }),
    { numRuns: 20_000 },
  );
});
