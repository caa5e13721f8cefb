/** What came of one attempt: the target's response, or the error that stood in its way. */

export const ERROR_CODES = [
  "http_status",
  "timeout",
  "dns",
  "connect",
  "tls",
  "reset",
  "blocked_target",
  "invalid_response",
  "unresolved_reference",
  "interrupted",
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

/** Names in lower case; a header that came more than once is one string, its values joined as RFC 9110 §5.3 says. */
export type Headers = Readonly<Record<string, string>>;

export interface Response {
  readonly kind: "response";
  readonly code: number;
  readonly headers: Headers;
  /** The body as it came, cut to the first MAX_RESPONSE_BYTES. */
  readonly body: Uint8Array;
  readonly truncated: boolean;
  readonly durationMs: number;
}

export interface Failure {
  readonly kind: "failure";
  readonly code: Exclude<ErrorCode, "http_status">;
  /** A sentence for a person. */
  readonly message: string;
  readonly durationMs: number;
}

export type Outcome = Response | Failure;

export const MAX_RESPONSE_BYTES = 1024 * 1024;
