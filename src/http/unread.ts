/** Answers that nobody reads: a client that asks and does not read may not fill the memory with them. */
import type { ServerResponse } from "node:http";
import { Problem } from "../base/errors.ts";
import { type Tenant, tenantKey } from "../base/tenant.ts";

/** What one account and mode may leave unread; an answer that is begun below this is given whole. */
const MAX_UNREAD_CHARS = 64 * 1024 * 1024;
/** Smaller ones are not worth the counting: as many as the rate limit and open connections allow come to little. */
const MIN_COUNTED_CHARS = 64 * 1024;

export class UnreadAnswers {
  private readonly unread = new Map<string, number>();
  private readonly lengths = new WeakMap<ServerResponse, number>();

  /** Throws `rate_limited` while too much is unread. */
  check(tenant: Tenant): void {
    if ((this.unread.get(tenantKey(tenant)) ?? 0) <= MAX_UNREAD_CHARS) return;
    throw new Problem(
      "rate_limited",
      `Over ${MAX_UNREAD_CHARS / 1024 / 1024} MiB of answers to this account in this mode wait to be read. Read them, or close their connections.`,
      { headers: { "Retry-After": "1" } },
    );
  }

  /** Counts an answer, or one of several in it, from when it is given until it was taken or its connection is gone. */
  add(tenant: Tenant, length: number, outgoing: ServerResponse): void {
    // Who was gone before the answer was made leaves none unread, and would not be told of again.
    if (length < MIN_COUNTED_CHARS || outgoing.closed) return;
    const key = tenantKey(tenant);
    this.count(key, length);
    const before = this.lengths.get(outgoing);
    this.lengths.set(outgoing, (before ?? 0) + length);
    if (before === undefined) outgoing.once("close", () => this.count(key, -this.lengths.get(outgoing)!));
  }

  private count(key: string, change: number): void {
    const rest = (this.unread.get(key) ?? 0) + change;
    if (rest === 0) this.unread.delete(key);
    else this.unread.set(key, rest);
  }
}
