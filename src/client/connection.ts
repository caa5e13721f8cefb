/** Where a client finds the service, and the key that it shows there. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ConfigFault } from "../base/errors.ts";
import { DEFAULT_DATA_DIR, DEFAULT_PORT, TEST_KEY_FILE } from "../base/places.ts";

export interface Connection {
  /** Without a slash at its end. */
  readonly url: string;
  readonly key: string;
}

/** No key, or one that cannot be one. */
export class KeyFault extends Error {}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** `ERRAND_URL` and `ERRAND_API_KEY`; for a service on this machine, else the test key in its data folder. */
export function readConnection(env: NodeJS.ProcessEnv): Connection {
  const url = baseUrl(env["ERRAND_URL"] || `http://localhost:${DEFAULT_PORT}`);
  const given = env["ERRAND_API_KEY"]?.trim();
  if (given !== undefined && given !== "") return { url: url.text, key: wellFormed(given, "ERRAND_API_KEY") };
  // The key of this machine's service is shown to no other one.
  if (!LOOPBACK.test(url.host))
    throw new KeyFault(`no API key: set ERRAND_API_KEY to a key of the service at ${url.text}`);
  const file = join(env["ERRAND_DATA_DIR"] || DEFAULT_DATA_DIR, TEST_KEY_FILE);
  return { url: url.text, key: wellFormed(readKeyFile(file), file) };
}

function baseUrl(text: string): { text: string; host: string } {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "")
    throw new ConfigFault("ERRAND_URL has to be an http or https URL, such as http://localhost:3000");
  if (url.username !== "" || url.password !== "")
    throw new ConfigFault("ERRAND_URL must not carry a user name or password; the key is in ERRAND_API_KEY");
  return { text: url.href.replace(/\/+$/, ""), host: url.hostname };
}

function readKeyFile(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : null;
    if (code === "EACCES")
      throw new KeyFault(`no API key: set ERRAND_API_KEY; ${file} may be read by its owner only`);
    if (code !== "ENOENT" && code !== "ENOTDIR") throw error;
    throw new KeyFault(
      `no API key: set ERRAND_API_KEY, or run this in the folder where \`errand serve\` was started (there is no ${file}; ERRAND_DATA_DIR names another place)`,
    );
  }
}

/** What could not stand in a header would be shown in the error that says so. */
function wellFormed(key: string, source: string): string {
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new KeyFault(`${source} is not the form of an Errand key: errand_test_… or errand_live_…`);
}
