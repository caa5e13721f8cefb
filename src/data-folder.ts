/** The data folder for the commands that work on it beside a running service. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { newApiKey } from "./accounts/api-key.ts";
import { formatTime, systemClock } from "./base/clock.ts";
import { ConfigFault } from "./base/errors.ts";
import { secretBox } from "./base/secret-box.ts";
import type { DataFolder } from "./cli/account-commands.ts";
import type { DataTools } from "./cli/data-commands.ts";
import { readConfig } from "./config.ts";
import { createAccount, SECRET_KEY_FILE, secretKey } from "./first-boot.ts";
import { backup, restore, resume } from "./store/sqlite/backup.ts";
import { doctor, EXIT_OF } from "./store/sqlite/doctor.ts";
import { DATABASE_FILE, openStore } from "./store/sqlite/open.ts";

/** Opens a folder that a service has made: what makes it, its test account included, is the first start. */
export async function openDataFolder(folder: string, env: NodeJS.ProcessEnv): Promise<DataFolder> {
  const config = readConfig(env, { dataDir: folder });
  if (!existsSync(join(folder, DATABASE_FILE)))
    throw new ConfigFault(
      `there is no Errand data in ${folder}: start the service there once, or name its folder with --data-dir or ERRAND_DATA_DIR`,
    );
  // A key made now would seal secrets that the service cannot open.
  if (config.secretKey === null && !existsSync(join(folder, SECRET_KEY_FILE)))
    throw new ConfigFault(
      `${folder} has no ${SECRET_KEY_FILE}: set ERRAND_SECRET_KEY as it is set for the service`,
    );
  const clock = systemClock;
  const box = secretBox(secretKey(folder, config.secretKey));
  const store = openStore({ folder, box, clock, exclusive: false });
  return {
    async createAccount(name) {
      const keys = { test: newApiKey("test"), live: newApiKey("live") };
      const { id } = await createAccount(store, name, keys, clock.now());
      return { id, name, test_key: keys.test, live_key: keys.live };
    },
    async accounts() {
      const accounts = await store.accounts.list();
      return accounts.map(({ id, name, createdAt }) => ({ id, name, created_at: formatTime(createdAt) }));
    },
    close: () => store.close(),
  };
}

/** What works on the folder as a whole, without opening it as a store. */
export const DATA_TOOLS: DataTools = {
  backup: (folder, file) => ({ bytes: backup(folder, file) }),
  restore,
  resume,
  doctor(folder) {
    const diagnosis = doctor(folder, systemClock.now());
    return { ...diagnosis, exitCode: EXIT_OF[diagnosis.verdict] };
  },
};
