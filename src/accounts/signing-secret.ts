/** Secrets that sign deliveries, in the form that Standard Webhooks 1.0 gives them. */
import { randomBytes } from "node:crypto";

const SECRET_BYTES = 32;

export function newSigningSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString("base64")}`;
}
