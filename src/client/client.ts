/** The REST client behind the command line and MCP over stdio: an operation and its input in, the answer or its problem out. */
import { parseJson, stringify } from "../base/json.ts";
import { type Operation, pathNames } from "../operations/operation.ts";
import { VERSION } from "../version.ts";
import type { Connection } from "./connection.ts";
import { readEvents, type ServerEvent } from "./server-events.ts";

/** The problem document of a refused call (RFC 9457), as far as a client relies on it. */
export interface ProblemDocument {
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly detail: string;
  readonly request_id: string | null;
  readonly errors?: readonly { readonly pointer: string; readonly detail: string }[];
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

/** Whether the fault may be over by itself: the service is away or is stopping, or there were too many calls. */
export function isPassing(error: unknown): error is ApiFault | ConnectFault {
  return error instanceof ConnectFault || (error instanceof ApiFault && error.document.status >= 429);
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Payloads and responses in it are RawJson, so that they can be printed as they are. Null for none. */
  readonly body: unknown;
}

export interface CallOptions {
  readonly idempotencyKey?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

interface RestRequest extends CallOptions {
  readonly method: string;
  /** From `/v1` on. */
  readonly path: string;
  readonly query?: URLSearchParams;
  /** An object to be sent as JSON, in which RawJson keeps its bytes. */
  readonly body?: unknown;
}

const isRaw = (path: string): boolean =>
  /(^|\/)(payload|response_body)$/.test(path) && !/(^|\/)(response_)?headers\//.test(path);

export class Client {
  private readonly connection: Connection;

  constructor(connection: Connection) {
    this.connection = connection;
  }

  get url(): string {
    return this.connection.url;
  }

  /** Calls an operation. `input` is flat, as its schema has it; what is wrong with it, the service says. */
  call(
    operation: Operation,
    input: Readonly<Record<string, unknown>>,
    options: CallOptions = {},
  ): Promise<Answer> {
    const { method } = operation.http;
    const rest = { ...input };
    let { path } = operation.http;
    for (const name of pathNames(operation)) {
      path = path.replace(`{${name}}`, pathSegment(rest[name]));
      delete rest[name];
    }
    if (method === "GET" || method === "DELETE")
      return this.request({ ...options, method, path, query: queryOf(rest) });
    return this.request({ ...options, method, path, body: rest });
  }

  async request(request: RestRequest): Promise<Answer> {
    const response = await this.send(request, "application/json");
    const text = await response.text().catch((error: unknown) => this.unreachable(error));
    return {
      status: response.status,
      headers: response.headers,
      body: text === "" ? null : this.parse(response, text),
    };
  }

  /** `GET /v1/events` after the event `lastEventId`; ends when the service or `signal` ends it. */
  async *events(lastEventId: string | null, signal?: AbortSignal): AsyncGenerator<ServerEvent> {
    const response = await this.send(
      { method: "GET", path: "/v1/events", signal },
      "text/event-stream",
      lastEventId === null ? {} : { "Last-Event-ID": lastEventId },
    );
    if (response.body === null) throw new ConnectFault(`${this.url} answered without events`);
    try {
      yield* readEvents(response.body);
    } catch (error) {
      this.unreachable(error);
    }
  }

  private async send(
    { method, path, query, body, idempotencyKey, signal }: RestRequest,
    accept: string,
    more: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    const headers: Record<string, string> = {
      Accept: accept,
      Authorization: `Bearer ${this.connection.key}`,
      "User-Agent": `errand-client/${VERSION}`,
      ...more,
    };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    if (idempotencyKey !== undefined) headers["Idempotency-Key"] = idempotencyKey;
    const search = query === undefined || query.size === 0 ? "" : `?${query.toString()}`;
    const response = await fetch(this.url + path + search, {
      method,
      headers,
      // The key goes to the place that the user named and to no other.
      redirect: "manual",
      ...(body === undefined ? {} : { body: stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    }).catch((error: unknown) => this.unreachable(error));
    if (response.ok) return response;
    throw await this.fault(response);
  }

  private async fault(response: Response): Promise<Error> {
    const { status, headers } = response;
    if (status >= 300 && status < 400)
      return new ConnectFault(
        `${this.url} redirects to ${headers.get("location") ?? "nowhere"}: set ERRAND_URL to where Errand is`,
      );
    const text = await response.text().catch((error: unknown) => this.unreachable(error));
    if (!headers.get("content-type")?.startsWith("application/problem+json"))
      return new ConnectFault(`${this.url} answered ${status}, and not as Errand does: check ERRAND_URL`);
    return new ApiFault(JSON.parse(text) as ProblemDocument);
  }

  private parse(response: Response, text: string): unknown {
    if (!response.headers.get("content-type")?.startsWith("application/json"))
      throw new ConnectFault(
        `${this.url} answered ${response.status} without JSON, and not as Errand does: check ERRAND_URL`,
      );
    return parseJson(text, isRaw, Number.POSITIVE_INFINITY);
  }

  private unreachable(error: unknown): never {
    if (error instanceof Error && error.name === "AbortError") throw error;
    const reason = reasonOf(error);
    throw new ConnectFault(
      reason.includes("ECONNREFUSED")
        ? `nothing answers at ${this.url}: start the service with \`errand serve\`, or set ERRAND_URL`
        : `${this.url} cannot be reached: ${reason}`,
      { cause: error },
    );
  }
}

/** `fetch failed` says nothing; what is behind it does. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (cause instanceof AggregateError && cause.errors.length > 0) return reasonOf(cause.errors[0]);
  if (cause instanceof Error) return reasonOf(cause);
  return error.message;
}

/**
 * One segment of a path. An empty one, `.` and `..` would name something else (RFC 3986 §5.2.4), and half of a surrogate
 * pair cannot be written in one: nothing is called so.
 */
export function pathSegment(value: unknown): string {
  const text = typeof value === "string" ? value : "";
  if (text !== "" && text !== "." && text !== ".." && text.isWellFormed()) return encodeURIComponent(text);
  const detail = `There is nothing named ${JSON.stringify(text)}.`;
  throw new ApiFault({ status: 404, code: "not_found", title: "Not found", detail, request_id: null });
}

function queryOf(fields: Readonly<Record<string, unknown>>): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    for (const one of Array.isArray(value) ? (value as unknown[]) : [value]) query.append(name, String(one));
  }
  return query;
}
