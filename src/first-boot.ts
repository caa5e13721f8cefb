/** What the first start makes: the key that seals secrets, a test account, and a test key. */
import { randomBytes } from "node:crypto";
import {
  accessSync,
  closeSync,
  constants,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { hashApiKey, hintOfKey, newApiKey } from "./accounts/api-key.ts";
import { SCOPES } from "./accounts/scopes.ts";
import { newSigningSecret } from "./accounts/signing-secret.ts";
import { makeFolder } from "./base/folder.ts";
import { newId } from "./base/ids.ts";
import { TEST_KEY_FILE } from "./base/places.ts";
import { MIN_SECRET_KEY } from "./base/secret-box.ts";
import { MODES, type Mode } from "./base/tenant.ts";
import { syncFolder } from "./store/sqlite/durability.ts";
import type { Store } from "./store/store.ts";

export const SECRET_KEY_FILE = "secret-key";

/** Makes the folder where there is none. One that cannot be used is told by the name of its setting. */
export function makeDataFolder(folder: string): void {
  try {
    makeFolder(folder);
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    throw new Error(
      `the data folder ${folder} cannot be used (${code}): set ERRAND_DATA_DIR (--data-dir) to a folder that this user may write`,
      { cause: error },
    );
  }
}

/** The key that seals secrets: the configured one, else the one in the data folder, made at the first start. */
export function secretKey(folder: string, configured: string | null): string {
  if (configured !== null) return configured;
  const file = join(folder, SECRET_KEY_FILE);
  const known = readIfThere(file);
  // An empty or cut file seals as well as a whole one, with a key that anybody can guess.
  if (known !== null && known.length < MIN_SECRET_KEY)
    throw new Error(
      `${file} holds no key of at least ${MIN_SECRET_KEY} characters; put back the one that was there`,
    );
  if (known !== null) return known;
  const made = randomBytes(32).toString("base64");
  writePrivately(folder, SECRET_KEY_FILE, made);
  return made;
}

/** Seeds the test account where there is no account yet. The answer is the key, to be shown once; null on later starts. */
export async function seed(
  store: Store,
  folder: string,
  configuredKey: string | null,
  now: number,
): Promise<string | null> {
  if ((await store.accounts.list()).length > 0) return null;
  const key = configuredKey ?? newApiKey("test");
  // The file comes first: a crash in between leaves a key that opens nothing, and the next start seeds again.
  writePrivately(folder, TEST_KEY_FILE, key);
  await createAccount(store, "Test account", { test: key }, now);
  return key;
}

/** An account with a signing secret for each mode and a key of all scopes for each mode that has one in `keys`. */
export async function createAccount(
  store: Store,
  name: string,
  keys: Partial<Record<Mode, string>>,
  now: number,
) {
  const account = { id: newId("acct", now), name, createdAt: now };
  await store.accounts.create(
    account,
    MODES.flatMap((mode) => {
      const key = keys[mode];
      if (key === undefined) return [];
      const id = newId("key", now);
      const hash = hashApiKey(key);
      return [
        {
          id,
          accountId: account.id,
          mode,
          name: `${name} (${mode})`,
          hint: hintOfKey(key),
          scopes: SCOPES,
          createdAt: now,
          hash,
        },
      ];
    }),
    MODES.map((mode) => ({
      id: newId("sec", now),
      secret: newSigningSecret(),
      createdAt: now,
      expiresAt: null,
      mode,
    })),
  );
  return account;
}

function readIfThere(file: string): string | null {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw new Error(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

/** Written whole or not at all, readable by its owner only. */
function writePrivately(folder: string, name: string, text: string): void {
  const file = join(folder, name);
  const fd = openSync(`${file}.new`, "w", 0o600);
  try {
    writeSync(fd, `${text}\n`);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(`${file}.new`, file);
  syncFolder(folder);
}
