/** What went wrong in an attempt: every error of sockets, TLS and the HTTP parser as a code and a sentence. */
import { errors } from "undici";
import type { Failure } from "../jobs/outcome.ts";

export type FailureCode = Failure["code"];

/** An attempt that failed in a way that is understood. The message is for the job's owner: nothing internal in it. */
export class DeliveryError extends Error {
  readonly code: FailureCode;

  constructor(code: FailureCode, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "DeliveryError";
    this.code = code;
  }
}

/** How far an attempt has come, which says what an error means. */
export type Stage = OpeningStage | "request" | "response";
export type OpeningStage = "dns" | "connect" | "tls";

/** An error on the way to a usable socket, explained. `target` is `host:port`. */
export function explainOpening(error: Error, stage: OpeningStage, target: string): DeliveryError {
  if (error instanceof DeliveryError) return error;
  const code = codeOf(error);
  if (stage === "dns") return new DeliveryError("dns", `${target}: ${dnsReason(code)}`, error);
  if (stage === "tls") return explainTls(code, target, error);
  return new DeliveryError("connect", `${target} ${connectReason(code)}`, error);
}

/** An error after that, explained; null when the request is one that undici does not write, a defect of Errand's. */
export function explainExchange(error: Error, stage: Stage, target: string): DeliveryError | null {
  if (error instanceof DeliveryError) return error;
  const code = codeOf(error);
  if (code === "UND_ERR_INVALID_ARG") return null;
  if (code.startsWith("ERR_SSL_") || code.startsWith("ERR_TLS_")) return explainTls(code, target, error);
  const invalid = invalidReason(code, stage, error);
  if (invalid !== null) return new DeliveryError("invalid_response", `${target} ${invalid}`, error);
  const when = stage === "response" ? "before its response was complete" : "before it answered";
  const how = code === "ECONNRESET" ? "reset the connection" : "closed the connection";
  return new DeliveryError("reset", `${target} ${how} ${when}`, error);
}

/** 101 (RFC 9110 §15.2.2) to a request that did not ask for it. */
export function switchedProtocols(target: string): DeliveryError {
  return new DeliveryError("invalid_response", `${target} ${SWITCHES_PROTOCOLS}`);
}

const SWITCHES_PROTOCOLS = "answered with a switch of protocols that was not asked for";

export function timedOut(stage: Stage, target: string, limit: string): DeliveryError {
  return new DeliveryError("timeout", `${target} ${TIMEOUT_REASONS[stage]} within ${limit}`);
}

const TIMEOUT_REASONS: Readonly<Record<Stage, string>> = {
  dns: "could not be found in DNS",
  connect: "did not accept a connection",
  tls: "did not finish the TLS handshake",
  request: "did not answer",
  response: "began a response and did not finish it",
};

function codeOf(error: Error): string {
  return "code" in error && typeof error.code === "string" ? error.code : "";
}

function dnsReason(code: string): string {
  if (code === "ENOTFOUND") return "the name does not resolve to any address";
  if (code === "EAI_AGAIN") return "the name could not be looked up, the name server did not answer";
  return `the name could not be looked up${inBrackets(code)}`;
}

function connectReason(code: string): string {
  return CONNECT_REASONS[code] ?? `could not be connected to${inBrackets(code)}`;
}

const CONNECT_REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "refused the connection",
  ECONNRESET: "reset the connection while it was being made",
  ETIMEDOUT: "did not accept the connection",
  EHOSTUNREACH: "cannot be reached, there is no route to the host",
  ENETUNREACH: "cannot be reached, there is no route to its network",
  EHOSTDOWN: "is down",
  EACCES: "may not be connected to, this machine's firewall forbids it",
  EPERM: "may not be connected to, this machine's firewall forbids it",
  EADDRNOTAVAIL: "could not be connected to, this machine has no free local port or address",
  EMFILE: "could not be connected to, too many connections are open",
  ENFILE: "could not be connected to, too many connections are open",
};

function explainTls(code: string, target: string, error: Error): DeliveryError {
  if (code === "ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL") {
    return new DeliveryError(
      "invalid_response",
      `${target} does not speak HTTP/1.1, which Errand needs`,
      error,
    );
  }
  return new DeliveryError(
    "tls",
    `${target} ${TLS_REASONS[code] ?? `failed the TLS handshake${inBrackets(code)}`}`,
    error,
  );
}

const NOT_TLS = "did not answer in TLS; is it an http:// URL?";
const UNKNOWN_ISSUER =
  "has a certificate that is not signed by a trusted authority, or leaves out part of its chain";
const SELF_SIGNED = "has a self-signed certificate";

const TLS_REASONS: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: "has a certificate that has expired",
  CERT_NOT_YET_VALID: "has a certificate that is not valid yet",
  CERT_REVOKED: "has a certificate that was revoked",
  DEPTH_ZERO_SELF_SIGNED_CERT: SELF_SIGNED,
  SELF_SIGNED_CERT_IN_CHAIN: SELF_SIGNED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_ISSUER,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_ISSUER,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_ISSUER,
  ERR_TLS_CERT_ALTNAME_INVALID: "has a certificate for another name",
  ERR_SSL_WRONG_VERSION_NUMBER: NOT_TLS,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: NOT_TLS,
  ERR_SSL_HTTP_REQUEST: NOT_TLS,
  ERR_SSL_UNSUPPORTED_PROTOCOL: "offers only TLS versions that are too old",
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: "does not accept the TLS versions that Errand offers",
  ECONNRESET: "closed the connection during the TLS handshake",
  EPIPE: "closed the connection during the TLS handshake",
};

/**
 * What was wrong with the bytes, or null when it is that they ended: however it was framed, a response that is cut off
 * is a connection that was closed too early.
 */
function invalidReason(code: string, stage: Stage, error: Error): string | null {
  if (code === "UND_ERR_HEADERS_OVERFLOW") return "sent response headers of over 64 KiB";
  if (error.message === "bad upgrade") return SWITCHES_PROTOCOLS;
  if (error instanceof errors.HTTPParserError) {
    const reason = /\((.*)\)$/.exec(error.message)?.[1] ?? "";
    return reason === "Invalid EOF state"
      ? null
      : `sent a response that is not valid HTTP/1.1${inBrackets(reason)}`;
  }
  // undici says this of any fault that it meets between a content-length header and the end of that many bytes.
  if (code === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH" && stage !== "response") {
    return "sent response headers that are not valid HTTP/1.1";
  }
  return null;
}

function inBrackets(code: string): string {
  return code === "" ? "" : ` (${code})`;
}
