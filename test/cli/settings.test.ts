/** Wrong settings: each stops the start with one line that names it and says what would be right, and exit code 2. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { readConfig, SETTINGS } from "../../src/config.ts";
import { temporaryFolder } from "../support/app.ts";
import { type CliOptions, runCli } from "../support/cli.ts";

const WRONG: Readonly<Record<keyof typeof SETTINGS, readonly string[]>> = {
  host: ["a b", "http://127.0.0.1", "-"],
  port: ["65536", "-1", "80.5", "http", "0x50"],
  dataDir: [" "],
  testKey: [
    "secret",
    "errand_live_0123456789abcdefghij",
    "errand_test_short",
    "errand_test_0123456789abcdefgh-j",
  ],
  rateLimit: ["-1", "many", "1e3"],
  concurrency: ["0", "1.5", "65537"],
  originConcurrency: ["0", "x"],
  maxBodyBytes: ["0", "1GiB", "1023", "1 MB", "65MiB"],
  egressDeny: ["privat", "10.0.0.0/33", "10.0.0", "example.com", "::1/129"],
  egressAllow: ["localhost", "127.0.0.1:80"],
  allowedHosts: [
    "https://errand.example.com",
    "*.example.com",
    "a b",
    "errand.example.com/",
    "me@errand.example.com",
    "errand.example.com:80",
    "errand.example.com:65536",
    "errand.example.com:",
    "a..b",
    "bücher.example",
    "errand.example.com;other",
  ],
  retentionMs: ["30", "1w", "-1d"],
  logLevel: ["loud", "INFO"],
  logFormat: ["xml"],
  shutdownTimeoutMs: ["30", "forever"],
  secretKey: ["too short"],
  metrics: ["yes", "true"],
};

function folderFor(t: TestContext): string {
  const folder = temporaryFolder();
  t.after(() => {
    chmodSync(folder, 0o700);
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

async function refused(options: CliOptions, args: readonly string[], code: number): Promise<string> {
  const ran = await runCli(args, options);
  assert.equal(ran.code, code, `${ran.out}${ran.err}`);
  assert.equal(ran.out, "");
  assert.match(ran.err, /^errand: [^\n]+\n$/, "one line");
  assert.doesNotMatch(ran.err, /\bat .*:\d+|undefined|Error:/);
  return ran.err;
}

describe("wrong settings", () => {
  for (const [name, { env: variable, flag }] of Object.entries(SETTINGS)) {
    for (const value of WRONG[name as keyof typeof SETTINGS]) {
      test(`${variable}=${value}`, async (t) => {
        const env = { ERRAND_DATA_DIR: join(folderFor(t), "data"), ERRAND_PORT: "0" };
        const line = await refused({ env: { ...env, [variable]: value } }, [], 2);
        assert.match(line, new RegExp(`^errand: ${variable} (has|must)`));
        const [option = ""] = flag.split(" ");
        const byFlag = await refused({ env }, [`${option}=${value}`], 2);
        assert.match(byFlag, new RegExp(`^errand: ${option} (has|must)`));
        assert.ok(!existsSync(env.ERRAND_DATA_DIR), "nothing was made");
        // A key that is wrong may be one that is right elsewhere.
        if (name === "testKey" || name === "secretKey") assert.ok(!line.includes(value), line);
      });
    }
  }
});

test("a test key that is too long is told how long it may be", () => {
  const [longest, tooLong] = [200, 201].map((length) => `errand_test_${"x".repeat(length)}`);
  assert.equal(readConfig({ ERRAND_TEST_KEY: longest }).testKey, longest);
  assert.throws(
    () => readConfig({ ERRAND_TEST_KEY: tooLong }),
    /ERRAND_TEST_KEY has to be .* 20 to 200 more/,
  );
});

test("hosts that a Host header can name are allowed: a name, an address, each with a port or without", () => {
  const hosts = ["errand.example.com", "Errand_1", "errand:8443", "192.0.2.1", "[2001:db8::1]:8080"];
  const config = readConfig({ ERRAND_ALLOWED_HOSTS: ` ${hosts.join(", ")},` });
  assert.deepEqual(config.allowedHosts, hosts);
});

/** Why no port is kept from this user (ip(7): ip_unprivileged_port_start); false where port 1 is. */
function mayTakeAnyPort(): string | false {
  const file = "/proc/sys/net/ipv4/ip_unprivileged_port_start";
  if (process.getuid?.() === 0) return "run as root";
  return existsSync(file) && Number(readFileSync(file, "utf8")) > 1 ? false : "every port is free to all";
}

describe("places that cannot be used: one line, exit code 1", () => {
  test("a data folder that is a file", async (t) => {
    const file = join(folderFor(t), "file");
    writeFileSync(file, "mine");
    const line = await refused({ env: { ERRAND_DATA_DIR: file, ERRAND_PORT: "0" } }, [], 1);
    assert.ok(
      line.includes(`the data folder ${file} cannot be used`) && line.includes("ERRAND_DATA_DIR"),
      line,
    );
  });

  for (const [where, more] of Object.entries({
    "a data folder below a file": {},
    "a data folder below a file, with a secret key from elsewhere": { ERRAND_SECRET_KEY: "k".repeat(32) },
  }))
    test(where, async (t) => {
      const file = join(folderFor(t), "file");
      writeFileSync(file, "mine");
      const env = { ERRAND_DATA_DIR: join(file, "data"), ERRAND_PORT: "0", ...more };
      assert.match(await refused({ env }, [], 1), /the data folder .* cannot be used .*ERRAND_DATA_DIR/);
    });

  // As an automount does; Node's own way to make folders never ends there.
  test("a data folder where the system makes none", async () => {
    const env = { ERRAND_DATA_DIR: "/proc/errand/data", ERRAND_PORT: "0" };
    assert.match(await refused({ env }, [], 1), /the data folder .* cannot be used \(ENOENT\)/);
  });

  // The administrator may write everywhere.
  const skip = process.getuid?.() === 0 ? "run as root" : false;
  test("a data folder that cannot be written", { skip }, async (t) => {
    const folder = folderFor(t);
    chmodSync(folder, 0o500);
    const line = await refused({ env: { ERRAND_DATA_DIR: folder, ERRAND_PORT: "0" } }, [], 1);
    assert.ok(line.includes(folder), line);
    assert.deepEqual(readdirSync(folder), []);
  });

  const cannotListen = async (t: TestContext, host: string, port: string, line: RegExp) => {
    const env = { ERRAND_DATA_DIR: folderFor(t), ERRAND_HOST: host, ERRAND_PORT: port };
    assert.match(await refused({ env }, [], 1), line);
  };

  test("an address that is not this machine's", (t) =>
    cannotListen(t, "192.0.2.1", "0", /192\.0\.2\.1 is no address of this machine: .*ERRAND_HOST/));

  test("a host name without an address", (t) =>
    cannotListen(
      t,
      "nosuch.invalid",
      "0",
      /no address is found for the name nosuch\.invalid: .*ERRAND_HOST/,
    ));

  test("a port that is taken", async (t) => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => server.close());
    const { port } = server.address() as AddressInfo;
    await cannotListen(t, "127.0.0.1", String(port), new RegExp(`port ${port} .* is taken.*ERRAND_PORT`));
  });

  test("a port that only the administrator may take", { skip: mayTakeAnyPort() }, (t) =>
    cannotListen(t, "127.0.0.1", "1", /port 1 .*ERRAND_PORT/),
  );

  test("a key file that is a folder", async (t) => {
    const folder = folderFor(t);
    mkdirSync(join(folder, "secret-key"));
    assert.match(await refused({ env: { ERRAND_DATA_DIR: folder, ERRAND_PORT: "0" } }, [], 1), /secret-key/);
  });

  test("a key file that is empty", async (t) => {
    const folder = folderFor(t);
    writeFileSync(join(folder, "secret-key"), "\n");
    assert.match(await refused({ env: { ERRAND_DATA_DIR: folder, ERRAND_PORT: "0" } }, [], 1), /secret-key/);
    assert.deepEqual(readdirSync(folder).sort(), ["lock", "secret-key"]);
  });
});
