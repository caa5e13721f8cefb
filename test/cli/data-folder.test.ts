/** The data folder from the command line: accounts made while the service runs, and a folder without data. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startTestApp, type TestApp, temporaryFolder } from "../support/app.ts";
import { cliOf, runCli } from "../support/cli.ts";
import { hasValidChecksum } from "../support/keys.ts";
import { startTarget } from "../support/target.ts";

describe("errand accounts", () => {
  let app: TestApp;
  before(async () => {
    app = await startTestApp();
  });
  after(() => app.stop());

  test("an account made beside the running service works at once, and its jobs are its own", async (t) => {
    const target = await startTarget();
    t.after(() => target.close());
    const env = { ERRAND_DATA_DIR: app.folder };
    const made = await runCli(["accounts", "create", "Acme", "-o", "json"], { env });
    assert.equal(made.code, 0, made.err);
    const account = JSON.parse(made.out);
    assert.ok(hasValidChecksum(account.test_key) && hasValidChecksum(account.live_key));

    for (const mode of ["test", "live"]) {
      const acme = { env: { ERRAND_API_KEY: account[`${mode}_key`] } };
      const errand = cliOf(app);
      const seen = JSON.parse((await errand(["account", "-o", "json"], acme)).out);
      assert.deepEqual([seen.account.name, seen.mode], ["Acme", mode]);
      // Signed with secrets that the running service can open.
      const job = await errand(["jobs", "create", "--url", target.url, "--wait", "-o", "id"], acme);
      assert.equal(job.code, 0, job.err);
      assert.equal((await errand(["jobs", "get", job.out.trim()])).code, 4);
    }
    const listed = await runCli(["accounts", "list", "-o", "ndjson"], { env });
    assert.deepEqual(
      listed.out
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).name),
      ["Test account", "Acme"],
    );
  });

  test("a folder without a service's data is left as it is", async () => {
    const folder = temporaryFolder();
    const { code, err } = await runCli(["accounts", "create", "Acme", "--data-dir", folder]);
    assert.equal(code, 2);
    assert.match(err, /there is no Errand data in/);
    assert.deepEqual(readdirSync(folder), []);
    rmSync(folder, { recursive: true });
  });

  test("where the service has its secret key from the environment, the command needs it too", async (t) => {
    const secretKey = randomBytes(32).toString("base64");
    const other = await startTestApp({ config: { secretKey } });
    t.after(() => other.stop());
    const { code, err } = await runCli(["accounts", "create", "Acme", "--data-dir", other.folder]);
    assert.equal(code, 2);
    assert.match(err, /set ERRAND_SECRET_KEY as it is set for the service/);
    assert.ok(!readdirSync(other.folder).includes("secret-key"));
    const env = { ERRAND_SECRET_KEY: secretKey };
    const right = await runCli(["accounts", "create", "Acme", "--data-dir", other.folder], { env });
    assert.equal(right.code, 0, right.err);
  });
});

test("a folder without data is none that doctor finds sound or in use: exit 1, and how to name another", async (t) => {
  const folder = temporaryFolder();
  t.after(() => rmSync(folder, { recursive: true }));
  for (const dataDir of [folder, join(folder, "none")]) {
    const { code, out, err } = await runCli(["doctor", "--data-dir", dataDir]);
    assert.deepEqual([code, out], [1, ""]);
    assert.equal(
      err,
      `errand: there is no Errand data in ${dataDir}: name its folder with --data-dir or ERRAND_DATA_DIR\n`,
    );
  }
  assert.deepEqual(readdirSync(folder), []);
  assert.match((await runCli(["doctor", "--help"])).out, /exit 0, 1 damaged or not there, 2 in use/);
});
