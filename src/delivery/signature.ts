/** The signature by which a target knows that a delivery is genuine: Standard Webhooks 1.0, symmetric. */
import { createHmac, createSecretKey, type KeyObject } from "node:crypto";

const SECRET_PREFIX = "whsec_";

/**
 * The value of `webhook-signature`: `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`, once for each secret,
 * separated by spaces, so that a target may hold either secret while they are rotated.
 *
 * @param secrets `whsec_` and base64.
 * @param body what is sent, byte for byte; a text counts as UTF-8, null as empty.
 */
export function signWebhook(
  secrets: readonly string[],
  messageId: string,
  timestampS: number,
  body: string | Uint8Array | null,
): string {
  return secrets.map((secret) => `v1,${sign(secret, `${messageId}.${timestampS}.`, body ?? "")}`).join(" ");
}

function sign(secret: string, head: string, body: string | Uint8Array): string {
  return createHmac("sha256", keyOf(secret)).update(head).update(body).digest("base64");
}

/** Keys that were used lately: to make one costs six times as much as to sign with it. */
const keys = new Map<string, KeyObject>();
const MAX_KEYS = 1_000;

function keyOf(secret: string): KeyObject {
  const known = keys.get(secret);
  if (known !== undefined) return known;
  const encoded = secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : secret;
  const key = createSecretKey(encoded, "base64");
  if (keys.size >= MAX_KEYS) keys.clear();
  keys.set(secret, key);
  return key;
}
