/** Makes a route of each operation: its path, its input, its answer. The only place where REST meets the operations. */
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { Hono, Context as HonoContext } from "hono";
import { Problem } from "../base/errors.ts";
import { JsonFault, parseJson } from "../base/json.ts";
import { callOperation, IDEMPOTENCY_KEY_FORM, isIdempotencyKey } from "../operations/call.ts";
import { coerceFields } from "../operations/coerce.ts";
import { type Operation, pathNames, type Services, Stream } from "../operations/operation.ts";
import { isRawPlace } from "../operations/raw-places.ts";
import type { StoredAnswer } from "../store/store.ts";
import { authenticate, requireScope } from "./auth.ts";
import { readBody } from "./body.ts";
import { type HttpEnv, headerOf } from "./env.ts";
import { EVENT_STREAM, writeEvents } from "./events.ts";

const JSON_TYPE = "application/json";

/** Mounts every operation, and a 405 with `Allow` for the other methods of each path. */
export function mountOperations(
  app: Hono<HttpEnv>,
  operations: readonly Operation[],
  services: Services,
): void {
  const byPath = Map.groupBy(operations, ({ http }) => http.path);
  // The first route that fits answers. "{" comes after every letter, so that `/v1/jobs/retry`, its 405 included, goes
  // before `/v1/jobs/{id}`, which would take it for an id.
  for (const template of [...byPath.keys()].sort()) {
    const path = template.replaceAll(/\{(\w+)\}/g, ":$1");
    const here = byPath.get(template)!;
    for (const operation of here) app.on(operation.http.method, path, (c) => serve(c, operation, services));
    refuseOtherMethods(
      app,
      path,
      here.map(({ http }) => http.method),
    );
  }
}

/** 405 with `Allow` for what the routes of a path, mounted before, do not take. */
export function refuseOtherMethods(app: Hono<HttpEnv>, path: string, allowed: readonly string[]): void {
  const allow = allowed.includes("GET") ? [...allowed, "HEAD"].join(", ") : allowed.join(", ");
  app.all(path, (c) => {
    throw new Problem("method_not_allowed", `${c.req.method} is not possible here; ${allow} is.`, {
      headers: { Allow: allow },
    });
  });
}

async function serve(c: HonoContext<HttpEnv>, operation: Operation, services: Services): Promise<Response> {
  const principal = await authenticate(services.store.accounts, headerOf(c, "authorization"));
  c.get("limitRate")(principal.tenant);
  requireScope(principal, operation.scope);
  const given = await givenInput(c, operation, services.limits.maxBodyBytes);
  const done = await callOperation(operation, given, {
    services,
    principal,
    idempotencyKey: operation.creates === true ? idempotencyKeyOf(c) : null,
    // Asking for it makes a whole Request of the one that Hono has, so it is left to those who wait.
    signal: () => c.req.raw.signal,
  });
  if (done instanceof Stream) return stream(c, done, services);
  c.get("countAnswer")(principal.tenant, done.answer.body.length);
  return respond(done.answer, done.replayed ? { "Idempotency-Replayed": "true" } : {});
}

function respond({ status, headers, body }: StoredAnswer, more: Record<string, string> = {}): Response {
  if (body === "") return new Response(null, { status, headers: { ...headers, ...more } });
  return new Response(body, { status, headers: { "content-type": JSON_TYPE, ...headers, ...more } });
}

function stream(c: HonoContext<HttpEnv>, output: Stream, { clock }: Services): Response {
  if (c.req.method === "HEAD") return new Response(null, { headers: { "content-type": EVENT_STREAM } });
  writeEvents(output, c.env.outgoing, clock);
  return RESPONSE_ALREADY_SENT;
}

/** Path parameters, query and body as one flat object, not yet checked. */
async function givenInput(c: HonoContext<HttpEnv>, operation: Operation, maxBytes: number): Promise<unknown> {
  const path = c.req.param() as Record<string, string>;
  const query = queryOf(c);
  const hasBody = operation.http.method !== "GET" && operation.http.method !== "DELETE";
  if (!hasBody) {
    const lastEventId = operation.streams === true ? headerOf(c, "last-event-id") : undefined;
    const resumed = lastEventId === undefined ? {} : { last_event_id: lastEventId };
    return { ...coerceFields(operation.input, query), ...resumed, ...path };
  }
  const unknown = [...query.keys()].map((name) => ({
    pointer: `/${name}`,
    detail: "is not a query parameter of this request",
  }));
  if (unknown.length > 0)
    throw new Problem("invalid_request", "This request takes no query parameters; put them into the body.", {
      errors: unknown,
    });
  const body = await jsonBody(c, operation, maxBytes);
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new Problem("invalid_request", "The body has to be a JSON object.", {
      errors: [{ pointer: "", detail: "has to be an object" }],
    });
  }
  // A path parameter is no field of the body.
  const doubled = Object.keys(path).filter((name) => Object.hasOwn(body, name));
  if (doubled.length > 0) {
    const errors = doubled.map((name) => ({
      pointer: `/${name}`,
      detail: "is not a field of this request; it is in the path",
    }));
    throw new Problem("invalid_request", `${doubled.join(", ")} is in the path, and no field of the body.`, {
      errors,
    });
  }
  return { ...body, ...path };
}

function bodyless(operation: Operation): boolean {
  return Object.keys(operation.input.entries).length === pathNames(operation).length;
}

const NO_QUERY: ReadonlyMap<string, string[]> = new Map();

function queryOf(c: HonoContext<HttpEnv>): ReadonlyMap<string, string[]> {
  if (c.env.incoming.url?.includes("?") !== true) return NO_QUERY;
  return new Map(Object.entries(c.req.queries()));
}

async function jsonBody(c: HonoContext<HttpEnv>, operation: Operation, maxBytes: number): Promise<unknown> {
  const text = await readBody(c.env.incoming, maxBytes);
  if (text === "") {
    if (operation.http.bodyOptional === true || bodyless(operation)) return {};
    throw new Problem("invalid_json", "The body is missing; this request needs a JSON object.");
  }
  const type = headerOf(c, "content-type");
  if (type === undefined || !/^application\/json *(;|$)/i.test(type)) {
    throw new Problem(
      "unsupported_media_type",
      `The Content-Type has to be application/json${type === undefined ? "" : `, not ${type}`}.`,
    );
  }
  try {
    return parseJson(text, isRawPlace);
  } catch (error) {
    if (error instanceof JsonFault)
      throw new Problem("invalid_json", `The body cannot be read: ${error.message}.`);
    throw error;
  }
}

/** `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header), quoted or bare. */
function idempotencyKeyOf(c: HonoContext<HttpEnv>): string | null {
  const header = headerOf(c, "idempotency-key");
  if (header === undefined) return null;
  const key = /^"(.*)"$/.exec(header)?.[1] ?? header;
  if (isIdempotencyKey(key)) return key;
  throw new Problem("invalid_request", `Idempotency-Key ${IDEMPOTENCY_KEY_FORM}.`, {
    errors: [{ pointer: "/idempotency-key", detail: IDEMPOTENCY_KEY_FORM }],
  });
}
