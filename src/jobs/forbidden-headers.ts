/** Header names that a job cannot set: the connection's own, and those that Errand sends itself. */

/** RFC 9110 §7.6.1 (hop-by-hop), and what frames the message. */
const FORBIDDEN = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "http2-settings",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

export function isForbiddenHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return FORBIDDEN.has(lower) || lower.startsWith("webhook-") || lower.startsWith("errand-");
}
