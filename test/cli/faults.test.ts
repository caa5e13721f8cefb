/** What goes wrong on the command line: one clear line, the exit code, and never the key. */
import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startTestApp, type TestApp, temporaryFolder } from "../support/app.ts";
import { cliOf, runCli } from "../support/cli.ts";

const OTHER_KEY = "errand_test_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzz";

describe("errors on the command line", () => {
  let app: TestApp;
  let errand: ReturnType<typeof cliOf>;
  const folder = temporaryFolder();
  before(async () => {
    app = await startTestApp();
    errand = cliOf(app);
  });
  after(async () => {
    await app.stop();
    rmSync(folder, { recursive: true });
  });

  const usage: [args: string[], line: RegExp][] = [
    [["jobs", "create", "--ulr", "x"], /^errand: unknown option '--ulr' \(did you mean --url\?\)\n$/],
    [["jobs", "creat"], /^errand: unknown command 'creat' \(did you mean create\?\)\n$/],
    [["jbos"], /^errand: unknown command 'jbos' \(did you mean jobs\?\)\n$/],
    [["--prot", "1"], /^errand: unknown option '--prot' \(did you mean --port\?\)\n$/],
    [["jobs", "get"], /^errand: missing required argument 'id'\n$/],
    [["jobs", "get", "a", "b"], /^errand: too many arguments/],
    [["jobs", "list", "-o", "yaml"], /^errand: .*'yaml' is invalid.*table, json, ndjson, id/],
    [
      ["jobs", "cancel-all", "--tag", "x", "-o", "id"],
      /^errand: .*'id' is invalid.*table, json, ndjson\.\n$/,
    ],
    [["backup", "/nowhere/x.db", "-o", "id"], /^errand: .*'id' is invalid.*table, json, ndjson\.\n$/],
    [["jobs", "create", "--payload", "{a"], /^errand: --payload has to be JSON, @file or - for stdin: .*\n$/],
    [["jobs", "create", "--payload", "@/nowhere"], /^errand: --payload: there is no file \/nowhere\n$/],
    [["jobs", "create", "--header", "secret"], /^errand: --header has to be name:value[^\n]*\n$/],
    [
      ["jobs", "wait", "job_x", "--timeout", "soon"],
      /^errand: --timeout has to be a whole number and a unit/,
    ],
    [["completion", "tcsh"], /^errand: .*Allowed choices are bash, zsh, fish/],
  ];
  for (const [args, line] of usage) {
    test(`errand ${args.join(" ")}`, async () => {
      const { code, out, err } = await errand(args);
      assert.match(err, line);
      assert.equal(out, "");
      assert.equal(code, 2);
    });
  }

  test("a refused request is one line with every fault and the request id", async () => {
    const { code, out, err } = await errand(["jobs", "create", "--url", "nope", "--max-attempts", "x"]);
    assert.equal(code, 2);
    assert.equal(out, "");
    assert.match(
      err,
      /^errand: url has to be an absolute URL[^\n]*\. max_attempts has to be a whole number from 1 to 100\. \(invalid_request, req_\w{26}\)\n$/,
    );
  });

  test("faults that are sentences of their own, or questions, stay so", async () => {
    const create = ["schedules", "create", "--url", "http://a.test/", "--cron-expr", "61 * * * *"];
    const { err } = await errand([...create, "--timezone", "Berlin"]);
    assert.match(
      err,
      /^errand: cron_expr: The minute .*use 0 to 59\. timezone "Berlin" is not .*Berlin\? \(/,
    );
  });

  test("an option given twice is told as that", async () => {
    const twice = ["jobs", "create", "--url", "http://a.test/", "--max-attempts", "3", "--max-attempts", "4"];
    const { code, err } = await errand(twice);
    assert.equal(code, 2);
    assert.match(err, /^errand: --max-attempts is given 2 times; give it once/);
  });

  test("an unknown job is 4, and -o json prints the problem document", async () => {
    const { code, out, err } = await errand(["jobs", "get", "job_x", "-o", "json"]);
    assert.equal(code, 4);
    const problem = JSON.parse(out);
    assert.equal(problem.code, "not_found");
    assert.equal(err, `errand: ${problem.detail} (not_found, ${problem.request_id})\n`);
    const dots = await errand(["jobs", "get", ".."]);
    assert.equal(dots.code, 4);
  });

  test("keys: none, malformed, unknown, without the scope", async () => {
    const none = await runCli(["account"], { env: { ERRAND_URL: app.url }, cwd: folder });
    assert.equal(none.code, 3);
    assert.match(none.err, /^errand: no API key: set ERRAND_API_KEY[^\n]*\n$/);
    const malformed = await errand(["account"], { env: { ERRAND_API_KEY: `${OTHER_KEY}\u00e9` } });
    assert.equal(malformed.code, 3);
    const unknown = await errand(["account"], { env: { ERRAND_API_KEY: OTHER_KEY } });
    assert.equal(unknown.code, 3);
    assert.match(unknown.err, /\(unauthorized, req_\w+\)\n$/);
    for (const { out, err } of [none, malformed, unknown]) assert.ok(!(out + err).includes("zzzz"));
  });

  test("the key of this machine's service goes to no other machine", async () => {
    const data = join(folder, "data");
    mkdirSync(data);
    writeFileSync(join(data, "test-key"), `${OTHER_KEY}\n`);
    const env = { ERRAND_URL: "http://errand.invalid", ERRAND_DATA_DIR: data };
    const { code, err } = await runCli(["account"], { env });
    assert.equal(code, 3);
    assert.match(err, /no API key: set ERRAND_API_KEY to a key of the service at http:\/\/errand\.invalid/);
  });

  test("where nothing answers, the line says how to start the service", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const { code, err } = await errand(["jobs", "list"], { env: { ERRAND_URL: `http://localhost:${port}` } });
    assert.equal(code, 1);
    assert.equal(
      err,
      `errand: nothing answers at http://localhost:${port}: start the service with \`errand serve\`, or set ERRAND_URL\n`,
    );
  });

  test("what answers and is not Errand is called so, and a redirect is not followed", async (t) => {
    let keys = 0;
    const server = createServer((incoming, outgoing) => {
      if (incoming.url === "/elsewhere") keys += 1;
      const redirects = incoming.url === "/v1/account";
      outgoing.writeHead(redirects ? 302 : 200, { location: "/elsewhere", "content-type": "text/html" });
      outgoing.end("<p>hello");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => server.close());
    const { port } = server.address() as AddressInfo;
    const env = { ERRAND_URL: `http://127.0.0.1:${port}` };
    const redirected = await errand(["account"], { env });
    assert.match(redirected.err, /redirects to \/elsewhere: set ERRAND_URL/);
    assert.equal(redirected.code, 1);
    assert.equal(keys, 0);
    const other = await errand(["jobs", "list"], { env });
    assert.match(other.err, /not as Errand does: check ERRAND_URL/);
  });

  test("a wrong ERRAND_URL is a wrong setting", async () => {
    const env = { ERRAND_URL: "ftp://x" };
    const { code, err } = await errand(["account"], { env });
    assert.equal(code, 2);
    assert.match(err, /^errand: ERRAND_URL has to be an http or https URL/);
  });

  test("a wrong setting of the service names the flag", async () => {
    const { code, err } = await runCli(["serve", "--port", "no"], { cwd: folder });
    assert.equal(code, 2);
    assert.match(err, /^errand: --port has to be a whole number from 0 to 65535, not "no"\n$/);
  });
});
