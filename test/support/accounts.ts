/** A second account beside the seeded one, made as `errand accounts create` makes it: while the service runs. */
import { newApiKey } from "../../src/accounts/api-key.ts";
import { systemClock } from "../../src/base/clock.ts";
import { secretBox } from "../../src/base/secret-box.ts";
import { createAccount, secretKey } from "../../src/first-boot.ts";
import { openStore } from "../../src/store/sqlite/open.ts";

/** The new account's keys, with all scopes. */
export async function addAccount(folder: string, name: string): Promise<{ test: string; live: string }> {
  const box = secretBox(secretKey(folder, null));
  const store = openStore({ folder, box, clock: systemClock, exclusive: false });
  const keys = { test: newApiKey("test"), live: newApiKey("live") };
  await createAccount(store, name, keys, systemClock.now());
  await store.close();
  return keys;
}
