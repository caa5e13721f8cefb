/** A store on a temporary folder, with one account in it, for tests that need no HTTP. */
import { rmSync } from "node:fs";
import { hashApiKey, newApiKey } from "../../src/accounts/api-key.ts";
import { SCOPES } from "../../src/accounts/scopes.ts";
import { newSigningSecret } from "../../src/accounts/signing-secret.ts";
import type { Clock } from "../../src/base/clock.ts";
import { newId } from "../../src/base/ids.ts";
import { secretBox } from "../../src/base/secret-box.ts";
import { MODES } from "../../src/base/tenant.ts";
import { openStore, type StoreOptions } from "../../src/store/sqlite/open.ts";
import type { Store } from "../../src/store/store.ts";
import { temporaryFolder } from "./app.ts";
import { VirtualClock } from "./clock.ts";
import { TENANT } from "./factories.ts";

export const BOX = secretBox("the key that seals the secrets of tests");

export interface TestStore {
  readonly store: Store;
  readonly folder: string;
  readonly clock: Clock;
  /** Closes the store and removes its folder. */
  close(): Promise<void>;
}

export async function openTestStore(options: Partial<StoreOptions> = {}): Promise<TestStore> {
  const folder = options.folder ?? temporaryFolder();
  const clock = options.clock ?? new VirtualClock();
  const store = openStore({ box: BOX, ...options, folder, clock });
  if ((await store.accounts.list()).length === 0) await addAccount(store, TENANT.accountId, clock.now());
  return {
    store,
    folder,
    clock,
    async close() {
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** An account with a key and a signing secret for each mode; the keys, as their hashes. */
export async function addAccount(store: Store, id: string, now: number): Promise<string[]> {
  const keys = MODES.map((mode) => ({
    id: newId("key", now),
    accountId: id,
    mode,
    name: `${id} ${mode}`,
    hint: "errand_…",
    scopes: SCOPES,
    createdAt: now,
    hash: hashApiKey(newApiKey(mode)),
  }));
  const secrets = MODES.map((mode) => ({
    id: newId("sec", now),
    secret: newSigningSecret(),
    createdAt: now,
    expiresAt: null,
    mode,
  }));
  await store.accounts.create({ id, name: id, createdAt: now }, keys, secrets);
  return keys.map(({ hash }) => hash);
}
