/** What a step sends: piped responses, references, and what cannot be resolved. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RawJson } from "../../src/base/json.ts";
import type { StoredResponse } from "../../src/jobs/job.ts";
import { sourcesOf, stepBody } from "../../src/jobs/pipeline.ts";
import { faultsOfReferences, fillIn } from "../../src/jobs/references.ts";

const response = (body: string | Uint8Array, more: Partial<StoredResponse> = {}): StoredResponse => ({
  code: 200,
  headers: { "content-type": "application/json", "x-other": "1" },
  body: Buffer.from(body),
  truncated: false,
  ...more,
});

const post = (payload: string | null) => ({
  method: "POST" as const,
  payload: payload === null ? null : new RawJson(payload),
});

/** The text that a payload becomes, or why not. */
function filled(payload: string, results: Record<string, StoredResponse> = {}, input: string | null = null) {
  const raw = input === null ? null : new RawJson(input);
  const made = stepBody(post(payload), "before", raw, new Map(Object.entries(results)));
  return "unresolved" in made ? made.unresolved : made.body;
}

describe("references", () => {
  const fetch = response(
    `{ "user" : {"id":9007199254740993, "n":1.0},"list":[[],[ 1 ]],"a/b":"\\u00e9","m~n":true}`,
  );

  test("are replaced by the raw text of what they find; every other byte stays", () => {
    const payload = `{ "b":1.0, "a" :[ {"$from":"fetch#/user/id"} ,{ "$from" : "fetch#/list/1" }],"c":{"$from":"fetch#/a~1b"},"d":{"$from":"fetch#/m~0n"},"z":-0 }`;
    assert.equal(
      filled(payload, { fetch }),
      `{ "b":1.0, "a" :[ 9007199254740993 ,[ 1 ]],"c":"\\u00e9","d":true,"z":-0 }`,
    );
  });

  test("can be the whole payload, and refer to the whole response", () => {
    assert.equal(filled(`{"$from":"fetch#/user"}`, { fetch }), `{"id":9007199254740993, "n":1.0}`);
    assert.equal(filled(` [{"$from":"fetch#"}]`, { fetch: response(" 7\n") }), ` [7]`);
  });

  test("find parts of the input", () => {
    assert.equal(filled(`{"$from":"input#/n"}`, {}, `{"n":1e400}`), "1e400");
    assert.match(
      String(filled(`{"$from":"input#/n"}`)),
      /^\{"\$from":"input#\/n"\} finds nothing: the pipeline has no input\.$/,
    );
  });

  test("only an object with the one member $from and a string in it is one; others are data", () => {
    for (const data of [
      `{"$from":1}`,
      `{"$from":null}`,
      `{"$from":"fetch#/user","more":1}`,
      `{"$from":"fetch#/user","$from":"fetch#/user"}`,
      `{"from":"fetch#/user"}`,
      `"$from"`,
      `["$from","fetch#/user"]`,
    ])
      assert.equal(filled(data, { fetch }), data);
    assert.equal(filled(`{"$from":{"$from":"fetch#/m~0n"}}`, { fetch }), `{"$from":true}`);
  });

  test("are known by what their key says, however it is written", () => {
    assert.equal(filled(String.raw`{"\u0024fr\u006fm":"fetch#\/m~0n"}`, { fetch }), "true");
  });

  test("what they bring in is not looked through for more", () => {
    const sly = response(`{"x":{"$from":"input#/secret"}}`);
    assert.equal(filled(`{"$from":"fetch#/x"}`, { fetch: sly }, `{"secret":1}`), `{"$from":"input#/secret"}`);
  });

  test("that lead nowhere are named, with the reason", () => {
    const payload = `{"a":{"$from":"fetch#/user/name"}}`;
    const cases: [StoredResponse, string][] = [
      [fetch, "finds nothing in the response of step fetch."],
      [response("<html>"), "cannot be followed: the response of step fetch is not JSON."],
      [response(new Uint8Array([0xff, 0x22])), "cannot be followed: the response of step fetch is not JSON."],
      [response(""), "finds nothing: the response of step fetch is empty."],
      [
        response(`{"user":{"name":1}}`, { truncated: true }),
        "cannot be followed: the response of step fetch was longer than the 1 MiB that is kept.",
      ],
    ];
    for (const [one, reason] of cases)
      assert.equal(filled(payload, { fetch: one }), `{"$from":"fetch#/user/name"} ${reason}`);
  });

  test("JSON is known by the body, not by its content type", () => {
    const odd = response(`{"a":1}`, { headers: { "content-type": "text/plain" } });
    assert.equal(filled(`{"$from":"fetch#/a"}`, { fetch: odd }), "1");
  });

  test("cannot make a payload endless", () => {
    const long = response(`"${"x".repeat(1_000_000)}"`);
    const payload = `[${Array(20).fill(`{"$from":"fetch#"}`).join(",")}]`;
    assert.match(String(filled(payload, { fetch: long })), /makes the payload longer than 16 MiB\.$/);
  });

  test("are read in one pass, however many there are", () => {
    const text = JSON.stringify(Array.from({ length: 20_000 }, (_, i) => ({ value: i })));
    const payload = `[${Array.from({ length: 20_000 }, (_, i) => `{"$from":"a#/${i}/value"}`).join(",")}]`;
    let reads = 0;
    const made = fillIn(new RawJson(payload), () => {
      reads += 1;
      return { text };
    });
    assert.equal(reads, 1);
    assert.deepEqual(
      JSON.parse("text" in made ? made.text : ""),
      Array.from({ length: 20_000 }, (_, i) => i),
    );
  });
});

describe("references are checked before they run", () => {
  const names = ["fetch", "check", "send"];
  const faults = (payload: string, position: number) =>
    faultsOfReferences(new RawJson(payload), names, position);

  test("earlier steps and the input may be named", () => {
    assert.deepEqual(faults(`[{"$from":"fetch#/a"},{"$from":"check#"},{"$from":"input#/~0~1"}]`, 2), []);
  });

  test("each fault with its place", () => {
    const payload = `{"a":[{"$from":"nope#/x"},{"b/c":{"$from":"send#"}},{"$from":"check#/x"},{"$from":"fetch"},{"$from":"fetch#x"},{"$from":"fetch#/~2"},{"$from":"#/x"},{"$from":"fetch#/${"x".repeat(1_024)}"}]}`;
    const found = faults(payload, 1);
    assert.deepEqual(
      found.map(({ pointer }) => pointer),
      ["/a/0/$from", "/a/1/b~1c/$from", ...[2, 3, 4, 5, 6, 7].map((i) => `/a/${i}/$from`)],
    );
    const expected = [
      /^names "nope", which is no step of this job; has to be "<name of an earlier step>#<JSON Pointer>"/,
      /^names step send, which does not come before this one$/,
      /^names step check, which does not come before this one$/,
      /^has to be "<name of an earlier step>#<JSON Pointer>" or "input#<JSON Pointer>"$/,
      /^has a malformed JSON Pointer/,
      /^has a malformed JSON Pointer/,
      /^has to be "</,
      /^has to have at most 1024 characters$/,
    ];
    found.forEach(({ detail }, i) => assert.match(detail, expected[i]!));
  });
});

describe("pipes", () => {
  test("the response of the step before goes on in bytes, content type and coding", () => {
    const bytes = new Uint8Array([0, 255, 10, 200]);
    const before = response(bytes, {
      headers: { "content-type": "image/png", "content-encoding": "gzip", "x-other": "1" },
    });
    const made = stepBody(post(null), "before", new RawJson("1"), new Map([["before", before]]));
    assert.ok("body" in made);
    assert.deepEqual(Buffer.from(made.body as Uint8Array), Buffer.from(bytes));
    assert.deepEqual(made.bodyHeaders, { "content-type": "image/png", "content-encoding": "gzip" });
  });

  test("the first step gets the input, or nothing", () => {
    assert.deepEqual(stepBody(post(null), null, new RawJson(`{"a":1.0}`), new Map()), {
      body: `{"a":1.0}`,
      bodyHeaders: { "content-type": "application/json" },
    });
    assert.deepEqual(stepBody(post(null), null, null, new Map()), { body: null, bodyHeaders: {} });
  });

  test("an empty response is an empty body, and a response without a type has none", () => {
    const empty = new Map([["before", response("")]]);
    assert.deepEqual(stepBody(post(null), "before", new RawJson("1"), empty), {
      body: null,
      bodyHeaders: {},
    });
    const untyped = new Map([["before", response("x", { headers: {} })]]);
    assert.deepEqual(stepBody(post(null), "before", null, untyped), {
      body: Buffer.from("x"),
      bodyHeaders: {},
    });
  });

  test("GET sends nothing", () => {
    const step = { method: "GET" as const, payload: null };
    const results = new Map([["before", response("x")]]);
    assert.deepEqual(stepBody(step, "before", null, results), { body: null, bodyHeaders: {} });
  });

  test("a cut response does not go on", () => {
    const results = new Map([["before", response("x", { truncated: true })]]);
    assert.deepEqual(stepBody(post(null), "before", null, results), {
      unresolved:
        "The body of this step is the response of step before, which was longer than the 1 MiB that is kept.",
    });
  });

  test("only the responses that a step needs are asked for", () => {
    assert.deepEqual(sourcesOf(post(null), "before"), new Set(["before"]));
    assert.deepEqual(sourcesOf(post(null), null), new Set());
    assert.deepEqual(sourcesOf({ method: "GET", payload: null }, "before"), new Set());
    assert.deepEqual(
      sourcesOf(post(`[{"$from":"a#/x"},{"$from":"a#/y"},{"$from":"input#"}]`), "before"),
      new Set(["a"]),
    );
  });
});
