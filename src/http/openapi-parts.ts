/** Parts of the API description that no operation says: problems, headers, the key, the callback, what needs no key. */
import { PROBLEMS } from "../base/errors.ts";
import type { JsonSchema } from "../operations/json-schema.ts";
import type { PathItem } from "./openapi.ts";

/** What holds for every call, as CommonMark. */
export const INTRODUCTION = `\
Every call needs a key: \`Authorization: Bearer errand_test_…\`. A key belongs to one account and one mode, test or live; what belongs to another does not exist for it.

Bodies are JSON in snake_case, sent with \`Content-Type: application/json\`. An unknown field is an error. Times are RFC 3339 in UTC with milliseconds. A duration is a whole number and a unit: \`30s\`, \`5m\`, \`1h\`, \`1d\`.

Errors are \`application/problem+json\` (RFC 9457). Programs go by \`code\`, people read \`detail\`, and \`errors\` lists every fault of the input with its JSON Pointer. \`X-Request-Id\` stands on every answer and in the log.

A POST that creates takes an \`Idempotency-Key\`: a repeat with the same key makes nothing new and gets the first answer again. Lists are newest first, and the \`next_cursor\` of a page is the \`cursor\` of the one after it.

Delivery is at least once: a job that was acknowledged is never lost. A duplicate can come only from a crash or an ambiguous timeout, and carries the same \`webhook-id\`. Each delivery is signed as Standard Webhooks 1.0 says.`;

/** RFC 9457, with Errand's extensions. */
export const PROBLEM_SCHEMA: JsonSchema = {
  type: "object",
  description: "What is wrong, and what would be right (RFC 9457).",
  properties: {
    type: { const: "about:blank" },
    title: { type: "string" },
    status: { type: "integer" },
    detail: { type: "string", description: "What is wrong with this request, for a person." },
    code: { enum: Object.keys(PROBLEMS), description: "What is wrong, for a program. Codes never change." },
    request_id: { type: "string" },
    errors: {
      type: "array",
      description: "Every fault of the input.",
      items: {
        type: "object",
        properties: {
          pointer: { type: "string", description: "The place, as a JSON Pointer (RFC 6901)." },
          detail: { type: "string" },
        },
        required: ["pointer", "detail"],
      },
    },
  },
  required: ["type", "title", "status", "detail", "code", "request_id"],
  examples: [
    {
      type: "about:blank",
      title: PROBLEMS.invalid_request.title,
      status: 422,
      detail: "max_attempts has to be a whole number from 1 to 100.",
      code: "invalid_request",
      request_id: "req_01kaj3v9w2e5h8rsa0mfkq4t7n",
      errors: [{ pointer: "/max_attempts", detail: "has to be a whole number from 1 to 100" }],
    },
  ],
};

const text = (description: string, more: JsonSchema = {}) => ({
  description,
  schema: { type: "string", ...more },
});

export const HEADERS = {
  "X-Request-Id": text("The id of this request: the one that was sent, if it is well formed.", {
    pattern: "^[A-Za-z0-9._-]{1,128}$",
  }),
  RateLimit: text(
    "What is left of the quota (draft-ietf-httpapi-ratelimit-headers); absent without a limit, or before a request counts.",
    {
      examples: [`"default";r=1999;t=1`],
    },
  ),
  "RateLimit-Policy": text("The quota and its window in seconds; absent without a limit.", {
    examples: [`"default";q=2000;w=2`],
  }),
  "Retry-After": { description: "Seconds to wait.", schema: { type: "integer", minimum: 0 } },
  "WWW-Authenticate": text("Bearer (RFC 6750)."),
  Location: text("The path of what was created.", { format: "uri-reference" }),
  "Idempotency-Replayed": {
    description: "There when this is the stored answer to an earlier request with the same Idempotency-Key.",
    schema: { const: "true" },
  },
};

export const SECURITY = {
  key: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "errand_test_… or errand_live_…",
    description: "An API key. What it needs is said with each operation: read, write, approve or admin.",
  },
};

const answers = (type: string, schema: JsonSchema, description: string) => ({
  description,
  headers: { "X-Request-Id": { $ref: "#/components/headers/X-Request-Id" } },
  content: { [type]: { schema } },
});

const keyless = (
  operationId: string,
  summary: string,
  responses: PathItem[string]["responses"],
): PathItem => ({
  get: { operationId, tags: ["System"], summary, security: [], responses },
});

const status = (...values: string[]): JsonSchema => ({
  type: "object",
  properties: { status: { enum: values }, reason: { type: "string" } },
  required: ["status"],
});

/** Answered without a key. */
export const KEYLESS_PATHS: Readonly<Record<string, PathItem>> = {
  "/livez": keyless("livez", "Whether the process answers", {
    200: answers("application/json", status("ok"), "It does."),
  }),
  "/readyz": keyless("readyz", "Whether the service can do its work", {
    200: answers("application/json", status("ready"), "It can."),
    503: answers("application/json", status("not_ready"), "It cannot; the reason is given."),
  }),
  "/metrics": keyless("metrics", "Metrics in the text format of Prometheus", {
    200: answers("text/plain", { type: "string" }, "The metrics."),
    404: answers(
      "application/problem+json",
      { $ref: "#/components/schemas/Problem" },
      "ERRAND_METRICS is off.",
    ),
  }),
  "/openapi.json": keyless("openapi", "The API, for programs", {
    200: answers("application/json", { type: "object" }, "OpenAPI 3.1."),
  }),
  "/docs": keyless("docs", "The API, for people", {
    200: answers("text/html", { type: "string" }, "A page."),
  }),
};

const signed = (name: string, description: string) => ({
  name,
  in: "header" as const,
  required: true,
  description,
  schema: { type: "string" },
});

/** What Errand sends to a `callback_url`. */
export const WEBHOOKS: Readonly<Record<string, PathItem>> = {
  "the callback_url": {
    post: {
      operationId: "jobEnded",
      tags: ["Callback"],
      summary: "A job with a callback_url has ended",
      description:
        "Signed as Standard Webhooks 1.0 says (https://www.standardwebhooks.com). Any 2xx answer will do; else it " +
        "is sent again, five times in all.",
      security: [],
      parameters: [
        signed("webhook-id", "Equal on every retry."),
        signed("webhook-timestamp", "Of this attempt, in Unix seconds."),
        signed(
          "webhook-signature",
          "v1, and the base64 HMAC-SHA256 of id.timestamp.body, one per active secret.",
        ),
      ],
      requestBody: {
        required: true,
        content: {
          "application/json": {
            schema: {
              type: "object",
              properties: {
                type: { enum: ["job.completed", "job.failed", "job.cancelled"] },
                timestamp: { type: "string", format: "date-time" },
                data: { $ref: "#/components/schemas/Job" },
              },
              required: ["type", "timestamp", "data"],
            },
          },
        },
      },
      responses: { "2XX": { description: "Taken." } },
    },
  },
};
