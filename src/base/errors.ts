/** Every error that a user of Errand can meet: one table, one class (RFC 9457 problem details). */

export const PROBLEMS = {
  invalid_json: { status: 400, title: "The body is not valid JSON" },
  malformed_request: { status: 400, title: "The request is not well-formed HTTP" },
  unauthorized: { status: 401, title: "A valid API key is needed" },
  forbidden: { status: 403, title: "The key does not allow this" },
  forbidden_host: { status: 403, title: "The Host header is not allowed" },
  forbidden_origin: { status: 403, title: "The Origin header is not allowed" },
  not_found: { status: 404, title: "Not found" },
  method_not_allowed: { status: 405, title: "The method is not allowed here" },
  request_timeout: { status: 408, title: "The request took too long to arrive" },
  not_cancellable: { status: 409, title: "The job cannot be cancelled now" },
  not_approvable: { status: 409, title: "The job is not waiting for approval" },
  not_retryable: { status: 409, title: "The job cannot be retried now" },
  name_taken: { status: 409, title: "The name is taken" },
  payload_too_large: { status: 413, title: "The body is too large" },
  unsupported_media_type: { status: 415, title: "The body has to be JSON" },
  invalid_request: { status: 422, title: "The request is not valid" },
  invalid_cron: { status: 422, title: "The cron expression is not valid" },
  invalid_timezone: { status: 422, title: "The time zone is not valid" },
  invalid_url: { status: 422, title: "The URL is not valid" },
  blocked_target: { status: 422, title: "The target address is not allowed" },
  idempotency_key_reused: { status: 422, title: "The idempotency key was used for another request" },
  rate_limited: { status: 429, title: "Too many requests" },
  headers_too_large: { status: 431, title: "The headers are too large" },
  internal_error: { status: 500, title: "Internal error" },
  unavailable: { status: 503, title: "The service is not available" },
} as const satisfies Record<string, { status: number; title: string }>;

export type ProblemCode = keyof typeof PROBLEMS;

/** One fault of the input: where it is (RFC 6901 pointer into the body or the parameters), and what would be right. */
export interface InvalidField {
  pointer: string;
  detail: string;
}

export class Problem extends Error {
  readonly code: ProblemCode;
  readonly errors: readonly InvalidField[] | undefined;
  /** Response headers that belong to the error, such as `Retry-After`. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ProblemCode,
    detail: string,
    more: { errors?: readonly InvalidField[]; headers?: Record<string, string>; cause?: unknown } = {},
  ) {
    super(detail, more.cause === undefined ? undefined : { cause: more.cause });
    this.name = "Problem";
    this.code = code;
    this.errors = more.errors;
    this.headers = more.headers ?? {};
  }

  get status(): number {
    return PROBLEMS[this.code].status;
  }
}

/** A setting is wrong: the message names it and says what would be right. The start stops with it. */
export class ConfigFault extends Error {}
