/** Checks a real response against the API description: its status, media type, headers and body have to be described. */
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import type { Ajv2020 as Ajv2020Type } from "ajv/dist/2020.js";
import { type ApiDescription, type DescribedResponse, describeApi } from "../../src/http/openapi.ts";
import { OPERATIONS } from "../../src/operations/index.ts";

const require = createRequire(import.meta.url);
const { Ajv2020 } = require("ajv/dist/2020.js") as { Ajv2020: typeof Ajv2020Type };
const addFormats = require("ajv-formats") as (ajv: Ajv2020Type) => void;

export const API: ApiDescription = describeApi(OPERATIONS, "0.0.0");

/** The description with every object closed, so that a field that is answered and not described is found. */
const CLOSED = close(API) as ApiDescription;

const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: true });
addFormats(ajv);
ajv.addSchema(CLOSED, "api");
const routes = Object.keys(API.paths).map((path) => ({
  path,
  pattern: new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`),
}));

export interface CheckedResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Throws when the response to `method path` is not one that the description has. Calls of no operation are not checked. */
export function assertConforms(method: string, path: string, response: CheckedResponse): void {
  const route = routeOf(new URL(path, "http://errand").pathname, method);
  if (route === null) return;
  const { status, headers, text } = response;
  const what = `${method} ${path} → ${status} ${text.slice(0, 500)}`;
  const { operation, pointer } = route;
  const described = operation.responses[status];
  assert.ok(described, `${what}: the API description has no ${status} for it`);
  assertHeaders(described, headers, what);

  const type = headers.get("content-type")?.split(";")[0];
  if (described.content === undefined) {
    assert.equal(text, "", `${what}: the API description has no body for it`);
    return;
  }
  assert.ok(type !== undefined && type in described.content, `${what}: ${type} is not described`);
  if (!type.endsWith("json")) return;
  const parts = [...pointer, "responses", String(status), "content", type, "schema"];
  const validate = ajv.getSchema(`api#/${parts.map(escape).join("/")}`);
  assert.ok(validate, `no schema at ${parts.join("/")}`);
  assert.ok(validate(JSON.parse(text)), `${what}\n${ajv.errorsText(validate.errors, { separator: "\n" })}`);
}

/** Throws when the data of an event of `GET /v1/events` is not as the description says. */
export function assertEventConforms(data: unknown): void {
  const validate = ajv.getSchema("api#/components/schemas/Event");
  assert.ok(validate, "no schema of events");
  assert.ok(validate(data), `${JSON.stringify(data)}\n${ajv.errorsText(validate.errors)}`);
}

function assertHeaders(described: DescribedResponse, headers: Headers, what: string): void {
  assert.ok(headers.get("x-request-id"), `${what}: no X-Request-Id`);
  const optional = new Set(["ratelimit", "ratelimit-policy", "idempotency-replayed"]);
  for (const name of Object.keys(described.headers ?? {})) {
    if (optional.has(name.toLowerCase()) && !headers.has(name)) continue;
    assert.ok(headers.has(name), `${what}: no ${name}, which is described`);
    const validate = ajv.getSchema(`api#/components/headers/${escape(name)}/schema`);
    const { type } = API.components.headers[name as keyof typeof API.components.headers].schema as {
      type?: string;
    };
    const value = headers.get(name) ?? "";
    assert.ok(validate?.(type === "integer" ? Number(value) : value), `${what}: ${name}: ${value}`);
  }
  for (const name of ["location", "retry-after", "idempotency-replayed", "ratelimit"]) {
    const known = Object.keys(described.headers ?? {}).some((one) => one.toLowerCase() === name);
    assert.ok(known || !headers.has(name), `${what}: ${name} is not described`);
  }
}

/** The operation of a call; literal paths go before those with a name in braces, as "{" comes after every letter. */
function routeOf(path: string, method: string) {
  const [route] = routes
    .filter(({ pattern }) => pattern.test(path))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
  const operation = route === undefined ? undefined : API.paths[route.path]?.[method.toLowerCase()];
  if (route === undefined || operation === undefined) return null;
  return { operation, pointer: ["paths", route.path, method.toLowerCase()] };
}

function escape(part: string): string {
  return encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1"));
}

/** Not where a schema is a part of an `allOf`: the other parts have fields of their own. */
function close(value: unknown, inAllOf = false): unknown {
  if (Array.isArray(value)) return value.map((one: unknown) => close(one, inAllOf));
  if (typeof value !== "object" || value === null) return value;
  const closed = Object.fromEntries(
    Object.entries(value).map(([key, part]) => [key, close(part, key === "allOf")]),
  );
  const isOpen = closed["properties"] !== undefined && closed["additionalProperties"] === undefined;
  return isOpen && !inAllOf ? { ...closed, additionalProperties: false } : closed;
}
