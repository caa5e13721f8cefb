/** Who is calling: the bearer key of a request (RFC 6750), and what it may do. */
import type { Principal } from "../accounts/account.ts";
import { hashApiKey, modeOfKey } from "../accounts/api-key.ts";
import type { Scope } from "../accounts/scopes.ts";
import { Problem } from "../base/errors.ts";
import type { AccountStore } from "../store/store.ts";

/**
 * The principal of an `Authorization` header. Keys are looked up by their SHA-256: what an attacker could learn from the
 * time of an index look-up is about the hash, which tells nothing of a key.
 */
export async function authenticate(
  accounts: AccountStore,
  authorization: string | undefined,
): Promise<Principal> {
  if (authorization === undefined)
    throw unauthorized("An API key is needed: send Authorization: Bearer errand_….");
  const key = /^bearer +(\S+) *$/i.exec(authorization)?.[1];
  if (key === undefined) throw unauthorized("The Authorization header has to be: Bearer errand_….");
  if (modeOfKey(key) === null)
    throw unauthorized("This is not the form of an Errand key: errand_test_… or errand_live_….");
  const principal = await accounts.authenticate(hashApiKey(key));
  if (principal === null) throw unauthorized("The API key is not known here, or was revoked.");
  return principal;
}

export function requireScope(principal: Principal, scope: Scope): void {
  if (principal.scopes.includes(scope)) return;
  const has = principal.scopes.length === 0 ? "none" : principal.scopes.join(", ");
  throw new Problem("forbidden", `This needs a key with the scope ${scope}; this key has ${has}.`);
}

function unauthorized(detail: string): Problem {
  return new Problem("unauthorized", detail, { headers: { "WWW-Authenticate": 'Bearer realm="errand"' } });
}
