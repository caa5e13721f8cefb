/** What Errand can do with API keys: make them, list them, revoke them; always those of the caller's account and mode. */
import * as v from "valibot";
import type { ApiKey } from "../accounts/account.ts";
import { hashApiKey, hintOfKey, newApiKey } from "../accounts/api-key.ts";
import { SCOPES } from "../accounts/scopes.ts";
import { formatTime } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import { newId } from "../base/ids.ts";
import { MODES } from "../base/tenant.ts";
import * as field from "./fields.ts";
import { type Operation, onceOnly, operation } from "./operation.ts";
import { described, pageOf, timeOut } from "./output-fields.ts";

const listed = {
  id: v.string(),
  name: v.string(),
  mode: v.picklist(MODES),
  scopes: v.array(v.picklist(SCOPES)),
  hint: described(v.string(), "The first and last characters of the key."),
  created_at: timeOut,
};

function viewKey({ id, name, mode, scopes, hint, createdAt }: ApiKey) {
  return { id, name, mode, scopes, hint, created_at: formatTime(createdAt) };
}

export const keyOperations: readonly Operation[] = [
  operation({
    name: "keys.create",
    summary: "Create an API key of the caller's mode; the full key is in this one answer",
    scope: "admin",
    effect: "write",
    input: field.closed({
      name: field.text(1, 255, "What the key is for, for a person to read."),
      scopes: v.pipe(
        v.array(v.picklist(SCOPES)),
        v.minLength(1, "has to name at least one scope"),
        v.check((scopes) => new Set(scopes).size === scopes.length, "must not name a scope twice"),
        v.description("What the key may do. No scope contains another."),
      ),
    }),
    output: v.object({ ...listed, key: described(v.string(), "Shown this once.") }),
    http: { method: "POST", path: "/v1/keys", status: 201 },
    cli: {
      command: "keys create",
      examples: ["errand keys create --name deploy --scopes write --scopes read"],
    },
    mcp: null,
    creates: true,
    problems: ["idempotency_key_reused"],
    example: { name: "deploy", scopes: ["read", "write"] },
    async run(context, { name, scopes }) {
      const { store, principal, clock } = context;
      const { accountId, mode } = principal.tenant;
      const key = newApiKey(mode);
      const createdAt = clock.now();
      const made: ApiKey = {
        id: newId("key", createdAt),
        accountId,
        mode,
        name,
        hint: hintOfKey(key),
        // In the order of the table, whatever the order they were named in.
        scopes: SCOPES.filter((scope) => scopes.includes(scope)),
        createdAt,
      };
      return onceOnly(
        context,
        (created: ApiKey) => ({ ...viewKey(created), key }),
        (once) => store.accounts.createKey({ ...made, hash: hashApiKey(key) }, once),
      );
    },
  }),

  operation({
    name: "keys.list",
    summary: "List the API keys of this account and mode, newest first; never the keys themselves",
    scope: "admin",
    effect: "read",
    input: field.closed(field.page),
    output: pageOf(v.object(listed)),
    http: { method: "GET", path: "/v1/keys", status: 200 },
    cli: { command: "keys list", examples: ["errand keys list"] },
    mcp: null,
    async run({ store, principal }, wanted) {
      const page = await store.accounts.keys(principal.tenant, field.pageRequest(wanted));
      return { data: page.items.map(viewKey), next_cursor: page.nextCursor };
    },
  }),

  operation({
    name: "keys.revoke",
    summary: "Revoke an API key: from this answer on it opens nothing",
    scope: "admin",
    effect: "destructive",
    input: field.closed({ id: field.id("a key") }),
    output: null,
    http: { method: "DELETE", path: "/v1/keys/{id}", status: 204 },
    cli: { command: "keys revoke", positional: ["id"], examples: ["errand keys revoke key_01jd…"] },
    mcp: null,
    problems: ["not_found"],
    async run({ store, principal }, { id }) {
      if (!(await store.accounts.revokeKey(principal.tenant, id)))
        throw new Problem("not_found", `There is no key ${id} in this account and mode.`);
      return null;
    },
  }),
];
