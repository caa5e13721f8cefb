/** What Errand tells a key about itself. */
import * as v from "valibot";
import { SCOPES } from "../accounts/scopes.ts";
import { MODES } from "../base/tenant.ts";
import * as field from "./fields.ts";
import { type Operation, operation } from "./operation.ts";
import { count, countOrNull, described } from "./output-fields.ts";

export const accountOperations: readonly Operation[] = [
  operation({
    name: "account.get",
    summary: "Read the account, mode, scopes and limits of the key in use",
    scope: "read",
    effect: "read",
    input: field.closed({}),
    output: v.object({
      account: v.object({ id: v.string(), name: v.string() }),
      mode: v.picklist(MODES),
      key: v.object({ id: v.string(), name: v.string() }),
      scopes: v.array(v.picklist(SCOPES)),
      limits: v.object({
        requests_per_second: described(countOrNull, "Null: no limit."),
        burst: countOrNull,
        max_body_bytes: count,
      }),
    }),
    http: { method: "GET", path: "/v1/account", status: 200 },
    cli: { command: "account", examples: ["errand account"] },
    mcp: null,
    async run({ store, principal, limits }) {
      const account = await store.accounts.get(principal.tenant.accountId);
      const { requestsPerSecond } = limits;
      return {
        account: { id: principal.tenant.accountId, name: account?.name ?? "" },
        mode: principal.tenant.mode,
        key: { id: principal.keyId, name: principal.keyName },
        scopes: [...principal.scopes],
        limits: {
          requests_per_second: requestsPerSecond === 0 ? null : requestsPerSecond,
          burst: requestsPerSecond === 0 ? null : 2 * requestsPerSecond,
          max_body_bytes: limits.maxBodyBytes,
        },
      };
    },
  }),
];
