/** Whatever JSON is thrown at whatever operation: an answer that the API description has, no 500, no field passed over. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import * as fc from "fast-check";
import { OPERATIONS } from "../../src/operations/index.ts";
import { type Operation, pathNames } from "../../src/operations/operation.ts";
import { startTestApp, type TestApp } from "../support/app.ts";

/** Values that some field takes, so that a throw gets past the schema now and then. */
const WORDS = [
  "http://127.0.0.1:9/",
  "30s",
  "365d",
  "0s",
  "2030-01-01T00:00:00Z",
  "0 0 1 1 *",
  "*/5 * * * *",
  "Europe/Berlin",
  "2026-11",
  "POST",
  "GET",
  "default",
  "pending",
  "read",
  "4xx",
  "skip",
  "step_1",
  "step_1#/a",
  "input#",
  "x-a",
  "***",
  "1",
];
const KEYS = [
  "__proto__",
  "constructor",
  "toString",
  "$from",
  "x-a",
  "authorization",
  "limit",
  "period",
  "",
  "~/",
];
const NUMBERS = [0, -0, 1, 3, 100, 404, 1_000, 1e21, -1, 0.5, 5e-324];

const word = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...WORDS) },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 30 }) },
  {
    weight: 1,
    arbitrary: fc.string({ unit: fc.constantFrom("\ud800", "\0", "é", "\r", "\n", "🙂", "/", "%") }),
  },
);
/** JSON whose objects have the fields of Errand's own, so that steps and batches get deep into the checks. */
const fieldNames = [...new Set([...OPERATIONS.flatMap(({ input }) => Object.keys(input.entries)), ...KEYS])];
const { json } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    word,
    fc.constantFrom(null, true, false, ...NUMBERS),
    fc.array(tie("json"), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom(...fieldNames), tie("json"), { maxKeys: 6 }),
  ),
}));

/** Fields that would do, and some of them replaced by anything. */
function inputFor(operation: Operation): fc.Arbitrary<unknown> {
  const { input, example } = operation;
  const inPath = pathNames(operation);
  const names = Object.keys(input.entries).filter((name) => !inPath.includes(name));
  const base = {
    url: "http://127.0.0.1:9/",
    cron_expr: "0 0 1 1 *",
    timezone: "UTC",
    name: "a",
    scopes: ["read"],
  };
  const wanted = Object.fromEntries(Object.entries(base).filter(([name]) => names.includes(name)));
  const right = fc.constantFrom<Record<string, unknown>>(wanted, example ?? {}, {});
  const wrong = fc.dictionary(fc.constantFrom(...names, ...KEYS), json, { maxKeys: 4 });
  return fc.oneof(
    { weight: 4, arbitrary: fc.tuple(right, wrong).map(([one, other]) => ({ ...one, ...other })) },
    { weight: 1, arbitrary: json },
  );
}

/** JSON text: as it should be, and cut, doubled or with bytes of its own. */
function textFor(operation: Operation): fc.Arbitrary<string> {
  const text = inputFor(operation).map((input) => JSON.stringify(input));
  const cut = fc.tuple(text, fc.nat(200)).map(([whole, at]) => whole.slice(0, at));
  const odd = fc.constantFrom(
    "",
    " ",
    "null",
    "[]",
    "1e999",
    `{"url":1e999}`,
    `{"a":1,"a":2}`,
    `{"\\ud800":1}`,
  );
  return fc.oneof(
    { weight: 6, arbitrary: text },
    { weight: 1, arbitrary: cut },
    { weight: 1, arbitrary: odd },
  );
}

describe("any JSON at any operation", () => {
  let app: TestApp;
  const ids = new Map<string, string>();
  before(async () => {
    app = await startTestApp({ config: { rateLimit: 0 } });
    const url = "http://127.0.0.1:9/";
    ids.set("jobs", (await app.createJob({ url, requires_approval: true }))["id"]);
    const { body } = await app.call("POST", "/v1/schedules", { url, cron_expr: "0 0 1 1 *", name: "a" });
    ids.set("schedules", body["id"]);
  });
  after(() => app.stop());

  const known = ({ http }: Operation) => ids.get(http.path.split("/")[2] ?? "") ?? "a";
  const methodsWithBody = new Set(["POST", "PUT", "PATCH"]);

  // What takes things away comes last.
  const operations = OPERATIONS.filter(({ streams }) => streams !== true).toSorted(
    (a, b) => Number(a.http.method === "DELETE") - Number(b.http.method === "DELETE"),
  );
  for (const operation of operations) {
    const { method, path } = operation.http;
    test(`${method} ${path}`, async () => {
      const place = fc.oneof(
        fc.constant(known(operation)),
        word.filter((text) => text !== ""),
      );
      const places = fc.array(place, { minLength: pathNames(operation).length, maxLength: 3 });
      const names = fc.constantFrom(...Object.keys(operation.input.entries), "__proto__", "a");
      const query = fc.array(fc.tuple(names, word), { maxLength: methodsWithBody.has(method) ? 0 : 3 });
      await fc.assert(
        fc.asyncProperty(
          places,
          query,
          textFor(operation),
          fc.boolean(),
          async (values, pairs, text, named) => {
            let next = 0;
            const at = path.replaceAll(/\{\w+\}/g, () =>
              encodeURIComponent(wellFormed(values[next++] ?? "a")),
            );
            const hasBody = methodsWithBody.has(method);
            // A wait is what the caller asks for, and no test waits for it.
            const search = new URLSearchParams(pairs.filter(([name]) => name !== "wait")).toString();
            const { status, text: answer } = await app.call(
              method,
              hasBody || search === "" ? at : `${at}?${search}`,
              hasBody ? text : undefined,
              named ? { "idempotency-key": `k${text.length}` } : {},
            );
            assert.ok(status < 500, `${method} ${at} ${text} → ${status} ${answer}`);
            if (status < 300 && hasBody && text.trim() !== "") {
              const unknown = Object.keys(JSON.parse(text)).filter(
                (name) => !Object.hasOwn(operation.input.entries, name),
              );
              assert.deepEqual(unknown, [], `${method} ${at} took ${text}`);
            }
          },
        ),
        { numRuns: 150 },
      );
    });
  }
});

test("any JSON as the arguments of any tool", async (t) => {
  const app = await startTestApp({ config: { rateLimit: 0 } });
  t.after(() => app.stop());
  const tools = OPERATIONS.filter(({ mcp }) => mcp !== null);
  const call = fc.constantFrom(...tools).chain((tool) => fc.tuple(fc.constant(tool.mcp), inputFor(tool)));
  const accept = { accept: "application/json, text/event-stream" };
  await fc.assert(
    fc.asyncProperty(call, async ([name, given]) => {
      const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: given } };
      const { status, text } = await app.call("POST", "/mcp", message, accept);
      assert.ok(status < 500, `${JSON.stringify(message)} → ${status} ${text}`);
      assert.doesNotMatch(text, /internal_error|-32603/, JSON.stringify(message));
    }),
    { numRuns: 1_000 },
  );
});

/** Paths are UTF-8, which has no half of a pair; a path of dots would be another path. */
function wellFormed(text: string): string {
  const place = text.toWellFormed();
  return /^\.*$/.test(place) ? "a" : place;
}
