/** The rate limit of the API: GCRA (the generic cell rate algorithm, ITU-T I.371), one number of state per tenant. */

export interface RateLimit {
  /** Requests per second in the long run. */
  readonly perSecond: number;
  /** Requests that may come at once. */
  readonly burst: number;
}

export interface RateDecision {
  readonly allowed: boolean;
  /** The theoretical arrival time to keep for the next request, in milliseconds. */
  readonly tatMs: number;
  /** Requests that would still be allowed at this moment. */
  readonly remaining: number;
  /** Milliseconds until a refused request would be allowed; 0 when allowed. */
  readonly retryAfterMs: number;
}

/** Decides one request. `tatMs` is the state that the last decision left (0 at first), `now` monotonic milliseconds. */
export function takeRequest(limit: RateLimit, tatMs: number, now: number): RateDecision {
  const intervalMs = 1_000 / limit.perSecond;
  const toleranceMs = intervalMs * limit.burst;
  const tat = Math.max(tatMs, now);
  const next = tat + intervalMs;
  const allowedAt = next - toleranceMs;
  if (allowedAt > now) return { allowed: false, tatMs: tat, remaining: 0, retryAfterMs: allowedAt - now };
  return {
    allowed: true,
    tatMs: next,
    remaining: Math.floor((now - allowedAt) / intervalMs + 1e-6),
    retryAfterMs: 0,
  };
}
