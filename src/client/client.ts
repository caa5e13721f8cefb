/** The REST client behind MCP over stdio: an operation and its input in, the answer or its problem out. */
import { RawJson, stringify } from "../base/json.ts";
import { type Operation, pathNames } from "../operations/operation.ts";
import { VERSION } from "../version.ts";

export interface Connection {
  /** Without a slash at its end. */
  readonly url: string;
  readonly key: string;
}

/** The problem document of a refused call (RFC 9457), as far as a client relies on it. */
export interface ProblemDocument {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
}

/** The service refused the call. */
export class ApiFault extends Error {
  readonly document: ProblemDocument;
  constructor(document: ProblemDocument) {
    super(document.detail);
    this.document = document;
  }
}

/** No answer came, or none of Errand's. */
export class ConnectFault extends Error {}

export interface CallOptions {
  readonly idempotencyKey?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export class Client {
  private readonly connection: Connection;

  constructor(connection: Connection) {
    this.connection = connection;
  }

  /** Calls an operation. `input` is flat, as its schema has it. */
  async call(
    operation: Operation,
    input: Readonly<Record<string, unknown>>,
    { idempotencyKey, signal }: CallOptions = {},
  ): Promise<{ status: number; body: unknown }> {
    const { url, key } = this.connection;
    const { method } = operation.http;
    const { path, rest } = fillPath(operation, input);
    const hasBody = method !== "GET" && method !== "DELETE";
    const response = await fetch(url + path + (hasBody ? "" : queryOf(rest)), {
      method,
      headers: {
        Authorization: `Bearer ${key}`,
        "User-Agent": `errand-client/${VERSION}`,
        ...(hasBody ? { "Content-Type": "application/json" } : {}),
        ...(idempotencyKey === undefined ? {} : { "Idempotency-Key": idempotencyKey }),
      },
      // The key goes to the place that the user named and to no other.
      redirect: "manual",
      ...(hasBody ? { body: stringify(rest) } : {}),
      ...(signal === undefined ? {} : { signal }),
    }).catch((error: unknown) => this.unreachable(error));
    const text = await response.text().catch((error: unknown) => this.unreachable(error));
    const type = response.headers.get("content-type") ?? "";
    if (type.startsWith("application/problem+json")) throw new ApiFault(JSON.parse(text) as ProblemDocument);
    if (!response.ok || (text !== "" && !type.startsWith("application/json")))
      throw new ConnectFault(`${url} answered ${response.status}, and not as Errand does: check ERRAND_URL`);
    return { status: response.status, body: text === "" ? null : new RawJson(text) };
  }

  private unreachable(error: unknown): never {
    if (error instanceof Error && error.name === "AbortError") throw error;
    throw new ConnectFault(`${this.connection.url} cannot be reached: ${reasonOf(error)}`, { cause: error });
  }
}

function fillPath(operation: Operation, input: Readonly<Record<string, unknown>>) {
  const rest = { ...input };
  let path = operation.http.path;
  for (const name of pathNames(operation)) {
    const given = rest[name];
    const value = typeof given === "string" ? given : JSON.stringify(given ?? "");
    // A URL loses these with the slash beside them (RFC 3986 §5.2.4), and would then name something else.
    if (value === "." || value === "..")
      throw new ApiFault({ status: 404, code: "not_found", detail: `There is nothing named ${value}.` });
    path = path.replace(`{${name}}`, encodeURIComponent(value));
    delete rest[name];
  }
  return { path, rest };
}

function queryOf(fields: Readonly<Record<string, unknown>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    for (const one of Array.isArray(value) ? (value as unknown[]) : [value]) query.append(name, String(one));
  }
  return query.size === 0 ? "" : `?${query.toString()}`;
}

/** `fetch failed` says nothing; what is behind it does. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (cause instanceof AggregateError && cause.errors.length > 0) return reasonOf(cause.errors[0]);
  return cause instanceof Error ? reasonOf(cause) : error.message;
}
