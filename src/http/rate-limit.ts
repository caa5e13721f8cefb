/** The rate limit of each account and mode, and its headers (draft-ietf-httpapi-ratelimit-headers-10). */
import { type RateLimit, takeRequest } from "../accounts/rate-limit.ts";
import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import { type Tenant, tenantKey } from "../base/tenant.ts";

export type RateLimiter = (tenant: Tenant) => Iterable<readonly [name: string, value: string]>;

/** Counts one request. The answer is the headers for its response; throws `rate_limited` when it is one too many. */
export function rateLimiter(limit: RateLimit, clock: Clock): RateLimiter {
  if (limit.perSecond === 0) return () => [];
  const tats = new Map<string, number>();
  // The policy in the draft's own terms: a quota of `burst` that fills up again within `burst / perSecond` seconds.
  const windowS = Math.max(1, Math.round(limit.burst / limit.perSecond));
  const policy = `"default";q=${limit.burst};w=${windowS}`;
  return (tenant) => {
    const key = tenantKey(tenant);
    const now = clock.monotonic();
    const decision = takeRequest(limit, tats.get(key) ?? 0, now);
    tats.set(key, decision.tatMs);
    const resetS = Math.ceil(Math.max(0, decision.tatMs - now) / 1_000);
    const quota = `"default";r=${decision.remaining};t=${resetS}`;
    if (decision.allowed) {
      return [
        ["RateLimit", quota],
        ["RateLimit-Policy", policy],
      ];
    }
    const retryAfterS = Math.ceil(decision.retryAfterMs / 1_000);
    throw new Problem(
      "rate_limited",
      `This account may make ${limit.perSecond} requests a second in this mode (ERRAND_RATE_LIMIT). Wait ${retryAfterS} s.`,
      { headers: { RateLimit: quota, "RateLimit-Policy": policy, "Retry-After": String(retryAfterS) } },
    );
  };
}
