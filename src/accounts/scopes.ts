/** What a key may do. Scopes do not contain one another: a key that only enqueues cannot approve what it enqueued. */

export const SCOPES = ["read", "write", "approve", "admin"] as const;
export type Scope = (typeof SCOPES)[number];
