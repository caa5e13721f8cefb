/** Keys of chosen scopes for a service that runs: put into its data folder, as the local commands do. */
import { checksum, hashApiKey, hintOfKey, newApiKey } from "../../src/accounts/api-key.ts";
import type { Scope } from "../../src/accounts/scopes.ts";
import { systemClock } from "../../src/base/clock.ts";
import { newId } from "../../src/base/ids.ts";
import { secretBox } from "../../src/base/secret-box.ts";
import { secretKey } from "../../src/first-boot.ts";
import { openStore } from "../../src/store/sqlite/open.ts";
import type { TestApp } from "./app.ts";

/** A test key of the seeded account. */
export async function addKey(app: TestApp, scopes: readonly Scope[]): Promise<string> {
  const { body } = await app.call("GET", "/v1/account");
  const { folder } = app;
  const box = secretBox(secretKey(folder, null));
  const store = openStore({ folder, box, clock: systemClock, exclusive: false });
  const key = newApiKey("test");
  await store.accounts.createKey(
    {
      id: newId("key", systemClock.now()),
      accountId: body.account.id,
      mode: "test",
      name: scopes.join(" "),
      hint: hintOfKey(key),
      scopes,
      createdAt: systemClock.now(),
      hash: hashApiKey(key),
    },
    null,
  );
  await store.close();
  return key;
}

/** Whether the last six characters are the checksum of the rest: what a secret scanner asks of a find. */
export function hasValidChecksum(key: string): boolean {
  return checksum(key.slice(0, -6)) === key.slice(-6);
}
