/** What Errand can do with the secrets that sign deliveries (Standard Webhooks 1.0): show them, rotate them. */
import * as v from "valibot";
import type { SigningSecret } from "../accounts/account.ts";
import { newSigningSecret } from "../accounts/signing-secret.ts";
import { formatTime, formatTimeOrNull } from "../base/clock.ts";
import { durationMs } from "../base/duration.ts";
import { newId } from "../base/ids.ts";
import * as field from "./fields.ts";
import { type Operation, onceOnly, operation } from "./operation.ts";
import { described, pageOf, timeOrNull, timeOut } from "./output-fields.ts";

const DEFAULT_OVERLAP = "24h";

const secrets = pageOf(
  v.object({
    id: v.string(),
    secret: described(v.string(), "whsec_ and base64, as Standard Webhooks has it."),
    created_at: timeOut,
    expires_at: described(timeOrNull, "When it stops signing; null for the current one."),
  }),
);

function viewSecrets(active: readonly SigningSecret[]) {
  const data = active.map(({ id, secret, createdAt, expiresAt }) => ({
    id,
    secret,
    created_at: formatTime(createdAt),
    expires_at: formatTimeOrNull(expiresAt),
  }));
  return { data, next_cursor: null };
}

export const signingSecretOperations: readonly Operation[] = [
  operation({
    name: "signing_secrets.list",
    summary: "List the secrets that sign deliveries now, the current one first",
    scope: "admin",
    effect: "read",
    input: field.closed({}),
    output: secrets,
    http: { method: "GET", path: "/v1/signing-secrets", status: 200 },
    cli: null,
    mcp: null,
    async run({ store, principal, clock }) {
      return viewSecrets(await store.accounts.signingSecrets(principal.tenant, clock.now()));
    },
  }),

  operation({
    name: "signing_secrets.rotate",
    summary: "Add a new signing secret; the earlier ones go on signing beside it for the overlap",
    description: "Answers the secrets that sign from now on, the new one first.",
    scope: "admin",
    effect: "destructive",
    input: field.closed({
      overlap: v.optional(field.overlap),
    }),
    output: secrets,
    http: { method: "POST", path: "/v1/signing-secrets/rotate", status: 200, bodyOptional: true },
    cli: null,
    mcp: null,
    creates: true,
    problems: ["idempotency_key_reused"],
    example: { overlap: "24h" },
    async run(context, { overlap }) {
      const { store, principal, clock } = context;
      const now = clock.now();
      const made = { id: newId("sec", now), secret: newSigningSecret(), createdAt: now, expiresAt: null };
      const othersExpireAt = now + durationMs(overlap ?? DEFAULT_OVERLAP);
      return onceOnly(context, viewSecrets, (once) =>
        store.accounts.rotateSigningSecret(principal.tenant, made, othersExpireAt, once),
      );
    },
  }),
];
