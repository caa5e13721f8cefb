/** What travels with a request through the middleware. */
import type { HttpBindings } from "@hono/node-server";
import type { Tenant } from "../base/tenant.ts";

export interface HttpEnv {
  Bindings: HttpBindings;
  Variables: {
    requestId: string;
    /** Counts the request against its tenant's rate limit; throws `rate_limited`. */
    limitRate: (tenant: Tenant) => void;
  };
}
