/** Secrets as canaries: after everything that a service does with them, none is found in its files, logs, figures or answers. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { temporaryFolder } from "../support/app.ts";
import { runCli } from "../support/cli.ts";
import { readEvents } from "../support/events.ts";
import { startProcess } from "../support/process.ts";
import { rawRequest } from "../support/raw-request.ts";
import { startTarget } from "../support/target.ts";

/** Files that hold a key because they are there to hold it; nobody but their owner may read them. */
const KEY_FILES = ["test-key", "secret-key"];

const canary = (name: string) => `canary-${name}-Zx9${name.length}Qw7`;
const SECRETS = [
  "job",
  "step",
  "schedule",
  "batch",
  "cookie",
  "custom",
  "patched",
  "response",
  "refused",
].map(canary);
const [JOB, STEP, SCHEDULE, BATCH, COOKIE, CUSTOM, PATCHED, RESPONSE, REFUSED] = SECRETS as [
  string,
  string,
  string,
  string,
  string,
  string,
  string,
  string,
  string,
];
/** No secret: shows that what is written is found. */
const PLAIN = canary("plain");

test("no secret is found where it does not belong", async (t: TestContext) => {
  const target = await startTarget((_, count) => ({
    status: count === 1 ? 500 : 200,
    headers: { "set-cookie": `id=${RESPONSE}`, "x-auth-token": RESPONSE },
    body: `{"ok":true}`,
  }));
  const folder = temporaryFolder();
  const backups = temporaryFolder();
  let errand = await startProcess({ folder, env: { ERRAND_LOG_LEVEL: "trace" } });
  t.after(async () => {
    await errand.cleanUp();
    await target.close();
    rmSync(backups, { recursive: true, force: true });
  });
  const seen: [where: string, text: string][] = [];
  const call = (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
    errand.call<any>(method, path, body, headers);
  /** A call whose answer must hold no secret. */
  const look = async (...what: Parameters<typeof call>) => {
    const answer = await call(...what);
    seen.push([`${what[0]} ${what[1]}`, `${JSON.stringify([...answer.headers])} ${answer.text}`]);
    return answer;
  };
  const events = await readEvents(errand);

  // Everything that takes secrets.
  const url = target.url;
  const once = { "idempotency-key": "once" };
  const headers = {
    authorization: `Bearer ${JOB}`,
    cookie: COOKIE,
    "x-my-api-key": CUSTOM,
    "x-plain": PLAIN,
  };
  const job = await look("POST", "/v1/jobs", { url, headers, callback_url: url, retry_delays: ["0s"] }, once);
  await look("POST", "/v1/jobs", { url, headers, callback_url: url, retry_delays: ["0s"] }, once);
  const dead = await look("POST", "/v1/jobs", { url: "http://127.0.0.1:9/", headers, max_attempts: 1 });
  const steps = [
    { url, headers: { "X-Api-Key": STEP } },
    { url, headers: { "x-webhook-secret": STEP } },
  ];
  const pipeline = await look("POST", "/v1/jobs", { steps, callback_url: url, retry_delays: ["0s"] });
  const jobs = [{ url, headers: { "Proxy-Authenticate-Token": BATCH } }];
  await look("POST", "/v1/jobs/batch", { jobs }, { "idempotency-key": "batch" });
  const spec = { cron_expr: "0 0 1 1 *", url, headers: { authorization: SCHEDULE } };
  const schedule = await look("POST", "/v1/schedules", spec, { "idempotency-key": "schedule" });
  await look("PUT", "/v1/schedules/by-name/a", { ...spec, steps: undefined });
  await look("PATCH", `/v1/schedules/${schedule.body.id}`, { headers: { authorization: PATCHED } });
  const triggered = await look("POST", `/v1/schedules/${schedule.body.id}/trigger`);
  const args = { url, headers: { authorization: JOB } };
  const tool = {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "create_job", arguments: args },
  };
  await look("POST", "/mcp", tool, { accept: "application/json, text/event-stream" });

  // What is shown once and kept only as a hash, or sealed.
  const made = await call("POST", "/v1/keys", { name: "a", scopes: ["read"] }, { "idempotency-key": "key" });
  const replayed = await call(
    "POST",
    "/v1/keys",
    { name: "a", scopes: ["read"] },
    { "idempotency-key": "key" },
  );
  assert.equal(replayed.body.key, made.body.key);
  const rotated = await call("POST", "/v1/signing-secrets/rotate", {}, { "idempotency-key": "rotate" });
  const signing: string[] = rotated.body.data.map(({ secret }: { secret: string }) => secret);
  assert.equal(signing.length, 2);

  // What is refused is not repeated either.
  await look("GET", "/v1/jobs", undefined, { authorization: `Bearer ${REFUSED}` });
  await look("GET", "/v1/jobs", undefined, { authorization: `Bearer errand_live_${"0".repeat(36)}` });
  await look("POST", "/v1/jobs", { url, headers: { authorization: `${REFUSED}\r\n` } });
  await look("POST", "/v1/jobs", { url: `http://${REFUSED}:${REFUSED}@127.0.0.1/` });
  await look("POST", "/v1/jobs", `{"headers":{"authorization":"${REFUSED}"`);
  const malformed = await rawRequest(
    errand.port,
    `GET / HTTP/1.1\r\nHost: a\r\nAuthorization: ${REFUSED}\x01\r\n\r\n`,
  );
  seen.push(["a malformed request", malformed.body]);

  for (const id of [job, dead, pipeline, triggered].map(({ body }) => body.id)) {
    await look("GET", `/v1/jobs/${id}?wait=30s`);
    await look("GET", `/v1/jobs/${id}/attempts`);
  }
  let told = await look("GET", `/v1/jobs/${job.body.id}`);
  while (told.body.callback?.status === "pending") told = await call("GET", `/v1/jobs/${job.body.id}`);
  for (const path of [
    "/v1/jobs",
    "/v1/schedules",
    `/v1/schedules/${schedule.body.id}`,
    "/v1/keys",
    "/v1/account",
  ])
    await look("GET", path);
  for (const path of ["/metrics", "/openapi.json", "/readyz"]) await look("GET", path);
  await events.until(({ event }) => event === "schedule.triggered" || event.startsWith("job."));
  seen.push(["events", events.text()]);
  events.close();

  // The targets did get what they were sent; what tells them of a job's end did not.
  const heard = JSON.stringify(target.received);
  for (const secret of [JOB, COOKIE, CUSTOM, STEP, BATCH, PATCHED]) assert.ok(heard.includes(secret), secret);
  const callbacks = target.received.filter(({ body }) => body.includes(`"type":"job.`));
  assert.ok(callbacks.length >= 2);
  seen.push(["callbacks", callbacks.map(({ body }) => body).join("\n")]);

  const backup = join(backups, "copy.db");
  const { code, err } = await runCli(["backup", backup, "--data-dir", folder]);
  assert.equal(code, 0, err);
  const secrets = [...SECRETS, ...signing, made.body.key, errand.key];
  const check = () => {
    // The first start shows its key once, on stderr.
    const log = errand.output().replace(/^ {4}errand_test_\w+$|Bearer errand_test_\w+/gm, "");
    for (const [where, text] of [...seen, ["the log", log] as const])
      assertNone(where, Buffer.from(text), secrets);
    for (const file of [backup, ...filesIn(folder)]) assertNone(file, readFileSync(file), secrets);
  };
  check();
  assert.ok(filesIn(folder).some((file) => file.endsWith("-wal") && readFileSync(file).includes(PLAIN)));
  await errand.kill();
  check();
  errand = await startProcess({ folder, env: { ERRAND_LOG_LEVEL: "trace" } });
  assert.equal(await errand.stop(), 0);
  check();
  assert.ok(readFileSync(join(folder, "errand.db")).includes(PLAIN));
});

/** All that a thief of the folder would find, but for the files that are there to hold a key. */
function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((file) => {
      const stats = statSync(file);
      if (!stats.isFile() || file.endsWith(".node")) return false;
      assert.equal(stats.mode & 0o077, 0, `${file} can be read by others`);
      return !KEY_FILES.some((name) => file === join(folder, name));
    });
}

/** As it is, as its base64 at each place, and as hexadecimal digits. */
function assertNone(where: string, bytes: Buffer, secrets: readonly string[]): void {
  const lower = bytes.toString("latin1").toLowerCase();
  for (const secret of secrets) {
    assert.ok(!bytes.includes(secret), `${where} holds ${secret}`);
    assert.ok(
      !lower.includes(Buffer.from(secret).toString("hex")),
      `${where} holds ${secret} in hexadecimal`,
    );
    for (const pad of ["", "a", "aa"]) {
      // Without the characters at either end, which depend on what stands beside it.
      const base64 = Buffer.from(pad + secret)
        .toString("base64")
        .slice(4, -4);
      assert.ok(!bytes.includes(base64), `${where} holds ${secret} in base64`);
    }
  }
}
