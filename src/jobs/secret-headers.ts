/** Which header names carry secrets: their values are stored masked or encrypted, and read back as `***`. */

export const MASK = "***";

/** RFC 9110 §11.6.2 and §11.7.2, RFC 6265. */
const STANDARD = /^(?:proxy-)?authorization$|^(?:set-)?cookie2?$/;

/** Says outright that it is a secret, wherever it says so: `x-hasura-admin-secret`, `x-client-secret-id`. */
const OUTRIGHT = /secret|passw(?:or)?d|passphrase|credential/;

/** Ends in the name of one: `x-auth-token`, `x-gitlab-token`, `stripe-signature`, `x-hub-signature-256`, `x-jwt`. */
const ENDING = /(?:^|[-_])(?:token|signature|jwt|auth|authorization)(?:-\d+)?$/;

/** A key that opens something. `idempotency-key`, `surrogate-key` and `x-partition-key` open nothing. */
const KEY =
  /(?:^|[-_])(?:access|account|admin|api|rapidapi|app|application|auth|client|encryption|functions|license|master|private|service|shared|signing|subscription)[-_]?key$/;

/** Whether a header of this name, in any case, has to be taken for a secret. */
export function isSecretHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return STANDARD.test(lower) || OUTRIGHT.test(lower) || ENDING.test(lower) || KEY.test(lower);
}
