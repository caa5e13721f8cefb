/**
 * Headers of every answer, whoever gives it: nothing here is to be cached, sniffed, framed or run. There is no CORS
 * (https://fetch.spec.whatwg.org/#http-cors-protocol), so no page of another origin reads an answer; and no
 * `Strict-Transport-Security`, which is for whoever ends TLS in front of Errand to promise.
 */
export const SAFE_HEADERS = [
  ["Cache-Control", "no-store"],
  ["X-Content-Type-Options", "nosniff"],
  ["Referrer-Policy", "no-referrer"],
  ["Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"],
] as const;
