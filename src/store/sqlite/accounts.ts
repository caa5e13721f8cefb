/** Accounts, keys and signing secrets in SQLite. */
import { and, asc, desc, eq, gt, isNull, lt, or } from "drizzle-orm";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import type { ApiKey, Principal, SigningSecret } from "../../accounts/account.ts";
import type { Scope } from "../../accounts/scopes.ts";
import type { Clock } from "../../base/clock.ts";
import { Problem } from "../../base/errors.ts";
import { isId } from "../../base/ids.ts";
import type { SecretBox } from "../../base/secret-box.ts";
import { MODES, type Mode, type Tenant, tenantKey } from "../../base/tenant.ts";
import { DEFAULT_QUEUE } from "../../jobs/job.ts";
import type { AccountStore, NewKey } from "../store.ts";
import type { Connection } from "./connection.ts";
import type { Directory } from "./directory.ts";
import type { OnceWriter } from "./once.ts";
import { wrongCursor } from "./read.ts";
import { accounts, apiKeys, signingSecrets, tenants } from "./schema.ts";
import type { Writer } from "./writer.ts";

/** Keys remembered; more are looked up again. */
const MAX_PRINCIPALS = 10_000;

/** Secrets of one account and mode that sign: each adds 48 characters to a header, of which targets take some 8 KB. */
const MAX_SECRETS = 50;

function tooManySecrets(): Problem {
  const detail = `has to be 0s, since ${MAX_SECRETS} secrets sign already; or wait until some of them have ended`;
  return new Problem("invalid_request", `overlap ${detail}.`, { errors: [{ pointer: "/overlap", detail }] });
}

interface Parts {
  readonly db: Connection;
  readonly orm: BetterSQLite3Database;
  readonly writer: Writer;
  readonly directory: Directory;
  readonly box: SecretBox;
  readonly once: OnceWriter;
  readonly clock: Clock;
}

export function accountCommands(parts: Parts): AccountStore {
  const { db, orm, writer, directory, box, once, clock } = parts;
  const principal = db.prepare<
    [string],
    { id: string; name: string; scopes: string; account_id: string; mode: Mode }
  >(
    `SELECT api_keys.id, name, scopes, account_id, mode FROM api_keys JOIN tenants ON tenants.id = api_keys.tenant
     WHERE hash = ?`,
  );

  function readSecrets(tenantId: number, now: number): SigningSecret[] {
    return orm
      .select()
      .from(signingSecrets)
      .where(
        and(
          eq(signingSecrets.tenant, tenantId),
          or(isNull(signingSecrets.expiresAt), gt(signingSecrets.expiresAt, now)),
        ),
      )
      .orderBy(desc(signingSecrets.createdAt), desc(signingSecrets.id))
      .all()
      .map((row) => ({
        id: row.id,
        secret: box.open(row.sealed),
        createdAt: row.createdAt,
        expiresAt: row.expiresAt,
      }));
  }

  function addSecret(tenantId: number, secret: SigningSecret): void {
    orm
      .insert(signingSecrets)
      .values({
        id: secret.id,
        tenant: tenantId,
        sealed: box.seal(secret.secret),
        createdAt: secret.createdAt,
        expiresAt: secret.expiresAt,
      })
      .run();
  }

  function addKey(tenantId: number, key: NewKey): void {
    const { id, hash, name, hint, scopes, createdAt } = key;
    orm.insert(apiKeys).values({ id, tenant: tenantId, hash, name, hint, scopes, createdAt }).run();
  }

  /** Keys that were valid when they were last looked up. What changes them empties it: see {@link forgetIfChanged}. */
  const principals = new Map<string, Principal>();
  const dataVersion = db.prepare<[], number>("PRAGMA data_version").pluck();
  let versionSeen = dataVersion.get();
  let lookedAt = Number.NaN;

  /** Another process wrote to the file (https://sqlite.org/pragma.html#pragma_data_version): it may have revoked a key. */
  function forgetIfChanged(): void {
    // Once a millisecond, whatever the load: each look asks the file.
    const now = clock.now();
    if (now === lookedAt) return;
    lookedAt = now;
    const version = dataVersion.get();
    if (version === versionSeen && principals.size < MAX_PRINCIPALS) return;
    versionSeen = version;
    principals.clear();
  }

  /** Each delivery is signed, so the secrets that had not run out at a time are remembered, opened, until one is added. */
  const opened = new Map<string, { readonly secrets: readonly SigningSecret[]; readonly at: number }>();

  return {
    async authenticate(keyHash): Promise<Principal | null> {
      forgetIfChanged();
      const known = principals.get(keyHash);
      if (known !== undefined) return known;
      const row = principal.get(keyHash);
      if (row === undefined) return null;
      const found: Principal = {
        tenant: { accountId: row.account_id, mode: row.mode },
        keyId: row.id,
        keyName: row.name,
        scopes: JSON.parse(row.scopes) as Scope[],
      };
      principals.set(keyHash, found);
      return found;
    },

    create(account, keys, secrets) {
      return writer.write(() => {
        orm.insert(accounts).values(account).run();
        for (const mode of MODES) {
          orm.insert(tenants).values({ accountId: account.id, mode }).run();
          const tenantId = directory.existingTenantId({ accountId: account.id, mode });
          directory.ensureQueue(tenantId, DEFAULT_QUEUE, account.createdAt);
        }
        for (const { mode, ...secret } of secrets) {
          addSecret(directory.existingTenantId({ accountId: account.id, mode }), secret);
        }
        for (const key of keys) addKey(directory.existingTenantId(key), key);
      });
    },

    async list() {
      return orm.select().from(accounts).orderBy(asc(accounts.createdAt), asc(accounts.id)).all();
    },

    async get(id) {
      return orm.select().from(accounts).where(eq(accounts.id, id)).get() ?? null;
    },

    createKey(key, onceOnly) {
      const tenantId = directory.existingTenantId(key);
      return writer.write(() =>
        once(tenantId, onceOnly, key.createdAt, (): ApiKey => {
          addKey(tenantId, key);
          const { hash: _hash, ...listed } = key;
          return listed;
        }),
      );
    },

    async keys(tenant, page) {
      const tenantId = directory.existingTenantId(tenant);
      if (page.cursor !== null && !isId("key", page.cursor)) throw wrongCursor();
      const rows = orm
        .select()
        .from(apiKeys)
        .where(
          and(eq(apiKeys.tenant, tenantId), page.cursor === null ? undefined : lt(apiKeys.id, page.cursor)),
        )
        .orderBy(desc(apiKeys.id))
        .limit(page.limit + 1)
        .all();
      const items = rows.slice(0, page.limit).map(
        ({ id, name, hint, scopes, createdAt }): ApiKey => ({
          id,
          ...tenant,
          name,
          hint,
          scopes,
          createdAt,
        }),
      );
      return { items, nextCursor: rows.length > page.limit ? (items.at(-1)?.id ?? null) : null };
    },

    revokeKey(tenant, id) {
      const tenantId = directory.existingTenantId(tenant);
      const mine = and(eq(apiKeys.tenant, tenantId), eq(apiKeys.id, id));
      return writer.write((transaction) => {
        principals.clear();
        const isRevoked = orm.delete(apiKeys).where(mine).run().changes > 0;
        if (isRevoked) transaction.emit({ kind: "key", keyId: id });
        return isRevoked;
      });
    },

    async signingSecrets(tenant: Tenant, now: number) {
      const key = tenantKey(tenant);
      let known = opened.get(key);
      // Where the clock was set back, one may be missing that had run out only by the clock as it was.
      if (known === undefined || now < known.at) {
        known = { secrets: readSecrets(directory.existingTenantId(tenant), now), at: now };
        opened.set(key, known);
      }
      return known.secrets.filter((secret) => secret.expiresAt === null || secret.expiresAt > now);
    },

    rotateSigningSecret(tenant, secret, othersExpireAt, onceOnly) {
      const tenantId = directory.existingTenantId(tenant);
      return writer.write(() =>
        once(tenantId, onceOnly, secret.createdAt, () => {
          const isOverlapping = othersExpireAt > secret.createdAt;
          if (isOverlapping && readSecrets(tenantId, secret.createdAt).length >= MAX_SECRETS)
            throw tooManySecrets();
          const stillSign = or(
            isNull(signingSecrets.expiresAt),
            gt(signingSecrets.expiresAt, othersExpireAt),
          );
          orm
            .update(signingSecrets)
            .set({ expiresAt: othersExpireAt })
            .where(and(eq(signingSecrets.tenant, tenantId), stillSign))
            .run();
          addSecret(tenantId, secret);
          opened.delete(tenantKey(tenant));
          return readSecrets(tenantId, secret.createdAt);
        }),
      );
    },
  };
}
