/** The API description, OpenAPI 3.1 (https://spec.openapis.org/oas/v3.1.1), made from the operations list. */
import { PROBLEMS, type ProblemCode } from "../base/errors.ts";
import { type JsonSchema, jsonSchemaOf } from "../operations/json-schema.ts";
import { type Operation, pathNames } from "../operations/operation.ts";
import { EVENT_STREAM } from "./events.ts";
import { HEADERS, INTRODUCTION, KEYLESS_PATHS, PROBLEM_SCHEMA, SECURITY, WEBHOOKS } from "./openapi-parts.ts";
import { Components } from "./openapi-schemas.ts";
import { PROBLEM_JSON } from "./problem.ts";

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
}

interface MediaType {
  readonly schema: JsonSchema;
  readonly example?: unknown;
  readonly "x-itemSchema"?: JsonSchema;
}

interface Reference {
  readonly $ref: string;
}

export interface DescribedResponse {
  readonly description: string;
  readonly headers?: Readonly<Record<string, Reference>>;
  readonly content?: Readonly<Record<string, MediaType>>;
}

export interface DescribedOperation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly content: Readonly<Record<string, MediaType>>;
  };
  readonly responses: Readonly<Record<string, DescribedResponse>>;
}

export type PathItem = Readonly<Record<string, DescribedOperation>>;

export interface ApiDescription {
  readonly openapi: string;
  readonly info: Readonly<Record<"title" | "version" | "summary" | "description", string>>;
  readonly paths: Readonly<Record<string, PathItem>>;
  /** What Errand sends to others. */
  readonly webhooks: Readonly<Record<string, PathItem>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly headers: typeof HEADERS;
    readonly securitySchemes: typeof SECURITY;
  };
  readonly [part: string]: unknown;
}

/** The end of the name of a request body's schema; what comes before is the operation. */
export const BODY = "Body";

/** What any call with a key can be answered. */
const ALWAYS: readonly ProblemCode[] = [
  "unauthorized",
  "forbidden",
  "invalid_request",
  "rate_limited",
  "internal_error",
  "unavailable",
];
/** What any call with a body can be answered. */
const WITH_BODY: readonly ProblemCode[] = ["invalid_json", "payload_too_large", "unsupported_media_type"];

export function describeApi(operations: readonly Operation[], version: string): ApiDescription {
  const components = new Components();
  components.name("Problem", PROBLEM_SCHEMA);
  const paths: Record<string, Record<string, DescribedOperation>> = {};
  for (const operation of operations) {
    const item = (paths[operation.http.path] ??= {});
    item[operation.http.method.toLowerCase()] = describe(operation, components);
  }
  const groups = [...new Set(operations.map(groupOf)), "System", "Callback"];
  return {
    openapi: "3.1.1",
    info: {
      title: "Errand",
      version,
      summary:
        "An HTTP job queue: one call enqueues a request to any URL, made later, retried, signed, kept.",
      description: INTRODUCTION,
    },
    servers: [{ url: "/" }],
    security: [{ key: [] }],
    tags: groups.map((name) => ({ name })),
    paths: { ...paths, ...KEYLESS_PATHS },
    webhooks: WEBHOOKS,
    components: { schemas: components.all, headers: HEADERS, securitySchemes: SECURITY },
  };
}

function describe(operation: Operation, components: Components): DescribedOperation {
  const { name, summary, description, scope, http } = operation;
  const input = jsonSchemaOf(operation.input);
  const hasBody = http.method !== "GET" && http.method !== "DELETE";
  const inPath = pathNames(operation);
  const rest = Object.keys(input.properties ?? {}).filter((field) => !inPath.includes(field));
  const parameters = [
    ...inPath.map((field) => parameter(input, field, "path")),
    ...(hasBody ? [] : rest.map((field) => parameter(input, field, "query"))),
    ...headersTaken(operation),
  ];
  return {
    operationId: name.replaceAll(/[._](\w)/g, (_, letter: string) => letter.toUpperCase()),
    tags: [groupOf(operation)],
    summary,
    ...(description === undefined ? {} : { description }),
    security: [{ key: [scope] }],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(hasBody && rest.length > 0 ? { requestBody: bodyOf(operation, input, rest, components) } : {}),
    responses: {
      ...successes(operation, components),
      ...failures(hasBody ? [...ALWAYS, ...WITH_BODY] : ALWAYS, operation),
    },
  };
}

function parameter(input: JsonSchema, name: string, place: "path" | "query"): Parameter {
  const { description, ...schema } = input.properties?.[name] ?? {};
  const required = input.required?.includes(name) === true;
  return {
    name,
    in: place,
    ...(required ? { required } : {}),
    ...(description === undefined ? {} : { description }),
    schema,
  };
}

function headersTaken(operation: Operation): Parameter[] {
  const header = (name: string, description: string, schema: JsonSchema): Parameter => ({
    name,
    in: "header",
    description,
    schema,
  });
  if (operation.streams === true)
    return [header("Last-Event-ID", "The id of the last event seen: the stream goes on after it.", TEXT)];
  if (operation.creates !== true) return [];
  const text = "A repeat with the same key within 24 hours makes nothing new and gets the same answer.";
  return [header("Idempotency-Key", text, { type: "string", pattern: `^"?[!-~]{1,255}"?$` })];
}

const TEXT: JsonSchema = { type: "string" };

function bodyOf(
  operation: Operation,
  input: JsonSchema,
  fields: readonly string[],
  components: Components,
): NonNullable<DescribedOperation["requestBody"]> {
  const { properties = {}, required = [] } = input;
  const schema: JsonSchema = {
    type: "object",
    properties: Object.fromEntries(fields.map((field) => [field, properties[field] ?? {}])),
    required: required.filter((field) => fields.includes(field)),
    additionalProperties: false,
  };
  const { example } = operation;
  return {
    required: operation.http.bodyOptional !== true,
    content: {
      "application/json": {
        schema: components.name(`${pascal(operation.name)}${BODY}`, schema),
        ...(example === undefined ? {} : { example: only(example, fields) }),
      },
    },
  };
}

function successes(operation: Operation, components: Components): Record<string, DescribedResponse> {
  const { http, output, creates, streams } = operation;
  const statuses = http.statuses ?? (typeof http.status === "number" ? [http.status] : []);
  const schema = output === null ? null : components.use(jsonSchemaOf(output));
  const headers = [
    ...RATE_LIMITED_HEADERS,
    ...(http.location === undefined ? [] : ["Location"]),
    ...(creates === true ? ["Idempotency-Replayed"] : []),
  ];
  const content = schema === null ? {} : { content: contentOf(schema, streams === true) };
  return Object.fromEntries(
    statuses.map((status) => [
      String(status),
      { description: DONE[status] ?? "Done.", headers: referTo(headers), ...content },
    ]),
  );
}

const DONE: Readonly<Record<number, string>> = { 201: "Created.", 204: "Done; there is nothing to say." };

function contentOf(schema: JsonSchema, streams: boolean): Record<string, MediaType> {
  if (!streams) return { "application/json": { schema } };
  const description = "Server-Sent Events. The data of each is JSON, as x-itemSchema says.";
  return { [EVENT_STREAM]: { schema: { type: "string", description }, "x-itemSchema": schema } };
}

/** The problems that an operation can answer, by their status. */
function failures(common: readonly ProblemCode[], operation: Operation): Record<string, DescribedResponse> {
  const codes = new Set([
    ...common,
    ...(operation.problems ?? []),
    ...(operation.creates === true ? (["idempotency_key_reused"] as const) : []),
  ]);
  const byStatus = Map.groupBy(codes, (code) => PROBLEMS[code].status);
  return Object.fromEntries(
    [...byStatus].map(([status, alike]) => [
      String(status),
      {
        description: alike.map((code) => `\`${code}\`: ${PROBLEMS[code].title}.`).join("\n\n"),
        headers: referTo(PROBLEM_HEADERS[status] ?? RATE_LIMITED_HEADERS),
        content: {
          [PROBLEM_JSON]: {
            schema: {
              allOf: [
                { $ref: "#/components/schemas/Problem" },
                { properties: { status: { const: status }, code: { enum: alike } } },
              ],
            },
          },
        },
      },
    ]),
  );
}

const RATE_LIMITED_HEADERS = ["X-Request-Id", "RateLimit", "RateLimit-Policy"];
const PROBLEM_HEADERS: Readonly<Record<number, readonly string[]>> = {
  401: ["X-Request-Id", "WWW-Authenticate"],
  429: [...RATE_LIMITED_HEADERS, "Retry-After"],
  503: [...RATE_LIMITED_HEADERS, "Retry-After"],
};

function referTo(headers: readonly string[]): Record<string, Reference> {
  return Object.fromEntries(headers.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function groupOf({ name }: Operation): string {
  return pascal(name.split(".")[0] ?? name);
}

function pascal(name: string): string {
  return name.replaceAll(/(?:^|[._-])(\w)/g, (_, letter: string) => letter.toUpperCase());
}

function only(record: Readonly<Record<string, unknown>>, keys: readonly string[]) {
  return Object.fromEntries(Object.entries(record).filter(([key]) => keys.includes(key)));
}
