/** `/openapi.json`: valid, complete, and true: examples fit, and every answer of a real service is one that it describes. */
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { after, before, describe, test } from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import type { Ajv2020 as Ajv2020Type } from "ajv/dist/2020.js";
import * as v from "valibot";
import { PROBLEMS } from "../../src/base/errors.ts";
import { describeApi } from "../../src/http/openapi.ts";
import { checkInput } from "../../src/operations/faults.ts";
import { OPERATIONS } from "../../src/operations/index.ts";
import { jsonSchemaOf } from "../../src/operations/json-schema.ts";
import { startTestApp, type TestApp } from "../support/app.ts";
import { API, assertConforms } from "../support/conforms.ts";
import { startTarget, type Target } from "../support/target.ts";

const require = createRequire(import.meta.url);
const { Ajv2020 } = require("ajv/dist/2020.js") as { Ajv2020: typeof Ajv2020Type };
const addFormats = require("ajv-formats") as (ajv: Ajv2020Type) => void;

const allOperations = Object.values(API.paths).flatMap((item) => Object.values(item));

test("every schema of every operation can be said in JSON Schema", () => {
  for (const { name, input, output } of OPERATIONS) {
    assert.doesNotThrow(() => jsonSchemaOf(input), name);
    if (output !== null) assert.doesNotThrow(() => jsonSchemaOf(output), name);
  }
});

test("the description is valid OpenAPI 3.1", async () => {
  const { valid, errors } = await new Validator().validate(structuredClone(API) as Record<string, unknown>);
  assert.ok(valid, JSON.stringify(errors, null, 1));
});

test("every reference leads somewhere, and every component is used", () => {
  const text = JSON.stringify(API);
  const used = new Set(
    [...text.matchAll(/"#\/components\/(\w+)\/([\w-]+)"/g)].map(([, kind, name]) => `${kind}/${name}`),
  );
  const made = (["schemas", "headers"] as const).flatMap((kind) =>
    Object.keys(API.components[kind]).map((name) => `${kind}/${name}`),
  );
  assert.deepEqual([...used].sort(), made.sort());
});

test("the steps of a schedule are described field by field, as those of a job", () => {
  const fieldsOf = (name: string) => Object.keys(API.components.schemas[name]?.properties ?? {});
  const results = new Set(["status", "approved_at", "attempts", "duration_ms", "last_error"]);
  const work = fieldsOf("Step").filter((field) => !results.has(field) && !field.startsWith("response_"));
  assert.deepEqual(fieldsOf("ScheduleStep"), work);
});

test("operation ids are unique", () => {
  const ids = allOperations.map(({ operationId }) => operationId);
  assert.equal(new Set(ids).size, ids.length);
});

test("every schema is valid JSON Schema 2020-12, and examples fit theirs", () => {
  const ajv = new Ajv2020({ strict: false });
  addFormats(ajv);
  ajv.addSchema(API, "api");
  const check = (schema: Record<string, unknown>, at: string) => {
    const { examples, example } = schema as { examples?: unknown[]; example?: unknown };
    for (const one of [...(examples ?? []), ...(example === undefined ? [] : [example])]) {
      const { examples: _, ...rest } = schema;
      const fits = ajv.compile(absoluteRefs((rest["schema"] ?? rest) as Record<string, unknown>));
      assert.ok(fits(one), `${at}: ${JSON.stringify(one)} ${ajv.errorsText(fits.errors)}`);
    }
  };
  let seen = 0;
  walk(API, "", (node, at) => {
    if ("examples" in node || "example" in node) {
      seen += 1;
      check(node, at);
    }
  });
  assert.ok(seen > 20);
  for (const [name, schema] of Object.entries(API.components.schemas))
    assert.doesNotThrow(() => ajv.compile(absoluteRefs({ ...schema })), name);
});

test("each operation's example is input that it takes", () => {
  for (const operation of OPERATIONS) {
    if (operation.example === undefined) continue;
    const { payload: _, ...fields } = operation.example;
    assert.doesNotThrow(() => checkInput(operation, withoutPayloads(fields)), operation.name);
  }
});

test("every error that an operation names is among its answers", () => {
  for (const { http, problems = [] } of OPERATIONS) {
    const described = API.paths[http.path]?.[http.method.toLowerCase()];
    for (const code of problems)
      assert.match(described?.responses[PROBLEMS[code].status]?.description ?? "", new RegExp(`\`${code}\``));
  }
});

test("a schema that JSON Schema cannot say stops the making", () => {
  const broken = { ...OPERATIONS[0]!, input: v.strictObject({ when: v.date() }) };
  assert.throws(() => describeApi([broken], "1"), /date/);
});

describe("real answers", () => {
  let app: TestApp;
  let target: Target;
  before(async () => {
    target = await startTarget((_, count) => (count === 1 ? { status: 500 } : { body: `{"n":1}` }));
    app = await startTestApp();
  });
  after(async () => {
    await app.stop();
    await target.close();
  });

  test("the check refuses what is not described", async () => {
    const { status, headers, text } = await app.call("GET", "/v1/account");
    const refuses = (change: Partial<{ status: number; text: string; headers: Headers }>) =>
      assert.throws(() => assertConforms("GET", "/v1/account", { status, headers, text, ...change }));
    assert.doesNotThrow(() => assertConforms("GET", "/v1/account", { status, headers, text }));
    refuses({ status: 409 });
    refuses({ text: text.replace("{", `{"surprise":1,`) });
    refuses({ text: text.replace(`"mode"`, `"mood"`) });
    refuses({ headers: new Headers({ "content-type": "application/json" }) });
  });

  test("of the document, the page, the probes and the metrics", async () => {
    for (const path of ["/openapi.json", "/docs", "/livez", "/readyz", "/metrics"]) {
      const { status } = await app.call("GET", path, undefined, { authorization: "" });
      assert.equal(status, 200, path);
    }
    const served = await app.call("GET", "/openapi.json");
    assert.deepEqual(Object.keys(served.body.paths), Object.keys(API.paths));
  });

  test("of jobs, pipelines, schedules and errors", async () => {
    const failing = await app.createJob({
      url: target.url,
      max_attempts: 1,
      tags: ["a"],
      headers: { cookie: "x" },
    });
    assert.equal((await app.ended(failing.id)).status, "failed");
    const pipeline = await app.createJob({
      payload: { order: 1 },
      steps: [{ url: target.url }, { url: target.url, requires_approval: true }],
    });
    assert.equal(pipeline.steps.length, 2);
    await app.call("GET", `/v1/jobs/${failing.id}/attempts`);
    await app.call("POST", `/v1/jobs/${failing.id}/retry`);
    await app.call("POST", `/v1/jobs/${failing.id}/approve`, { note: "no" });
    await app.call("GET", "/v1/jobs?limit=1&status=failed");
    await app.call("GET", "/v1/jobs?limit=1000");
    await app.call("POST", "/v1/jobs/batch", { jobs: [{ url: target.url, delay: "1h" }] });
    await app.call("POST", "/v1/jobs/cancel", {});
    const once = { "idempotency-key": "one" };
    await app.call("POST", "/v1/jobs", { url: target.url, delay: "1h" }, once);
    await app.call("POST", "/v1/jobs", { url: target.url, delay: "1h" }, once);
    await app.call("POST", "/v1/jobs", { url: target.url }, once);
    await app.call("POST", "/v1/jobs", { url: "nonsense" });
    await app.call("POST", "/v1/jobs", "{");
    await app.call("POST", "/v1/jobs", "x", { "content-type": "text/plain" });
    await app.call("GET", "/v1/jobs", undefined, { authorization: "Bearer no" });
    const schedule = { cron_expr: "0 9 * * 1", url: target.url, name: "weekly" };
    const { body } = await app.call("POST", "/v1/schedules", schedule);
    await app.call("POST", "/v1/schedules", schedule);
    await app.call("GET", "/v1/schedules");
    await app.call("GET", `/v1/schedules/${body.id}`);
    await app.call("DELETE", `/v1/schedules/${body.id}`);
    const gone = await app.call("GET", `/v1/schedules/${body.id}`);
    assert.equal(gone.status, 404);
  });
});

function walk(node: unknown, at: string, visit: (node: Record<string, unknown>, at: string) => void): void {
  if (typeof node !== "object" || node === null) return;
  if (!Array.isArray(node)) visit(node as Record<string, unknown>, at);
  for (const [key, part] of Object.entries(node))
    if (key !== "examples" && key !== "example") walk(part, `${at}/${key}`, visit);
}

function absoluteRefs(schema: Record<string, unknown>): Record<string, unknown> {
  return JSON.parse(JSON.stringify(schema).replaceAll(`"$ref":"#/`, `"$ref":"api#/`)) as Record<
    string,
    unknown
  >;
}

/** Payloads come out of the door as RawJson; an example has plain values. */
function withoutPayloads(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutPayloads);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, part]) => (key === "payload" ? [] : [[key, withoutPayloads(part)]])),
  );
}
