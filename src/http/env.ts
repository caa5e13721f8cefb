/** What travels with a request through the middleware. */
import type { HttpBindings } from "@hono/node-server";
import type { Context as HonoContext } from "hono";
import type { Tenant } from "../base/tenant.ts";

export interface HttpEnv {
  Bindings: HttpBindings;
  Variables: {
    requestId: string;
    /** Counts the request against its tenant's rate limit; throws `rate_limited`, also while too many answers are unread. */
    limitRate: (tenant: Tenant) => void;
    /** Counts the length of an answer among those that its tenant has not read yet. */
    countAnswer: (tenant: Tenant, length: number) => void;
  };
}

/** A header of the request as Node has read it. Hono would make an object of all of them first, for every request. */
export function headerOf(c: HonoContext<HttpEnv>, name: string): string | undefined {
  const value = c.env.incoming.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}
