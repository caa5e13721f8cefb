/** The program as a whole: its help, its completion, what it loads, and how it looks on a terminal. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { describeField } from "../../src/operations/coerce.ts";
import { OPERATIONS } from "../../src/operations/index.ts";
import { startTestApp, type TestApp, temporaryFolder } from "../support/app.ts";
import { BUNDLE, cliOf, runCli, runOnTerminal, startCli } from "../support/cli.ts";

const folder = temporaryFolder();
after(() => rmSync(folder, { recursive: true }));

describe("help", () => {
  test("every operation with a command has one, with examples", async () => {
    const completion = (await runCli(["completion", "fish"])).out;
    for (const { cli, name } of OPERATIONS) {
      if (cli === null) continue;
      assert.ok(cli.examples.length > 0, name);
      const [group = "", command] = cli.command.split(" ");
      assert.ok(completion.includes(`'__errand_at '\\''${group}'\\'''`) || command === undefined, name);
    }
    const help = (await runCli(["jobs", "create", "--help"])).out;
    assert.match(help, /Examples:\n +errand jobs create --url https/);
    assert.match(help, /--max-attempts <number>/);
  });

  test("every argument and option says what it is for", async () => {
    // Times and durations say how they are written, too, but not that alone.
    const tellsNothing = /^(?:\(required\))?$|^A (?:duration|time)\b/;
    const lines = (await runCli(["completion", "fish"])).out.split("\n");
    const options = lines.flatMap((line) => {
      const [, at, option, help] = /-n '__errand_at (.*)' -l (\S+).* -d '(.*)'$/.exec(line) ?? [];
      return help !== undefined && tellsNothing.test(help) ? [`${at} --${option}`] : [];
    });
    assert.deepEqual(options, []);
    const positional = OPERATIONS.flatMap(({ name, cli, input }) =>
      (cli?.positional ?? []).filter((field) => describeField(input.entries[field]!) === "").map(() => name),
    );
    assert.deepEqual(positional, []);
  });

  test("ids are offered by the commands whose answers have some, and by those that answer nothing", async () => {
    const lines = (await runCli(["completion", "fish"])).out.split("\n");
    const without = lines
      .filter((line) => line.includes("-l output") && !line.includes("'table json ndjson id'"))
      .map((line) => /__errand_at '\\''(.*?)'\\''/.exec(line)?.[1] ?? line);
    assert.deepEqual(without.toSorted(), [
      "account",
      "backup",
      "doctor",
      "jobs attempts",
      "jobs cancel-all",
      "jobs retry-all",
      "restore",
      "resume",
      "schedules next",
      "schedules occurrences",
      "usage",
    ]);
  });

  test("the settings of the service are its flags", async () => {
    const { code, out } = await runCli(["--port", "1", "--help"]);
    assert.equal(code, 0);
    assert.match(
      out,
      /--data-dir <folder> +folder of the database and its keys\s+\[ERRAND_DATA_DIR,\s+\.\/errand-data\]/,
    );
  });

  test("a client loads nothing of the service", () => {
    const spy = join(folder, "spy.cjs");
    writeFileSync(
      spy,
      `const Module = require("node:module");
       const load = Module._load;
       const seen = new Set();
       Module._load = function (name, ...rest) { seen.add(name.replace("node:", "")); return load.call(this, name, ...rest); };
       process.on("exit", () => process.stderr.write(JSON.stringify([...seen])));`,
    );
    const { stderr } = spawnSync(process.execPath, ["--require", spy, BUNDLE, "--help"], {
      encoding: "utf8",
    });
    const loaded = JSON.parse(stderr) as string[];
    for (const name of [
      "worker_threads",
      "sea",
      "http",
      "https",
      "http2",
      "tls",
      "sqlite",
      "diagnostics_channel",
    ])
      assert.ok(!loaded.includes(name), `${name} was loaded`);
  });
});

describe("completion", () => {
  async function complete(line: string): Promise<string[]> {
    const script = join(folder, "errand.bash");
    writeFileSync(script, (await runCli(["completion", "bash"])).out);
    const words = line.split(" ");
    const program = `source ${script}; COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}; _errand; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout, stderr } = spawnSync("bash", ["-c", program], { encoding: "utf8" });
    assert.equal(stderr, "");
    return stdout.split("\n").filter(Boolean);
  }

  test("bash completes groups, commands, options and values", async () => {
    assert.deepEqual(await complete("errand job"), ["jobs"]);
    assert.ok((await complete("errand jobs ")).includes("approve"));
    assert.deepEqual(await complete("errand jobs create --max"), ["--max-attempts"]);
    assert.deepEqual(await complete("errand jobs create --url x --dedupe-k"), ["--dedupe-key"]);
    assert.deepEqual(await complete("errand jobs list --status f"), ["failed"]);
    assert.deepEqual(await complete("errand jobs list -o nd"), ["ndjson"]);
    assert.deepEqual(await complete("errand completion z"), ["zsh"]);
    assert.ok((await complete("errand serve --p")).includes("--port"));
  });

  for (const shell of ["zsh", "fish"] as const) {
    test(`${shell}, where it is installed, reads its script`, async (t) => {
      if (spawnSync(shell, ["--version"]).error !== undefined) return t.skip(`${shell} is not installed`);
      const script = join(folder, `errand.${shell}`);
      writeFileSync(script, (await runCli(["completion", shell])).out);
      assert.equal(spawnSync(shell, ["-n", script]).status, 0);
    });
  }
});

describe("on a terminal", () => {
  let app: TestApp;
  before(async () => {
    app = await startTestApp();
  });
  after(() => app.stop());

  test("states have a colour, tables fit, and NO_COLOR is heard", async (t) => {
    const { id } = await app.createJob({ url: `http://127.0.0.1:9/${"long/".repeat(30)}`, delay: "1h" });
    const env = { ERRAND_URL: app.url, ERRAND_API_KEY: app.key };
    const shown = await runOnTerminal(72, ["jobs", "list"], { env });
    if (shown === null) return t.skip("script is not installed");
    assert.match(shown, /\u001b\[33mpending\u001b\[39m/);
    const plain = (await runOnTerminal(72, ["jobs", "list"], { env: { ...env, NO_COLOR: "1" } })) ?? "";
    assert.ok(plain.includes(id) && !plain.includes("\u001b"), plain);
    for (const line of plain.trim().split("\n")) assert.ok(line.length <= 72, line);
  });

  test("off a terminal there are no colours, and a closed pipe is no error", async () => {
    const errand = cliOf(app);
    assert.ok(!(await errand(["jobs", "list"])).out.includes("\u001b"));
    assert.match((await errand(["jobs", "list"], { env: { FORCE_COLOR: "1" } })).out, /\u001b\[33mpending/);
    const child = startCli(["jobs", "list"], { env: { ERRAND_URL: app.url, ERRAND_API_KEY: app.key } });
    child.stdout.destroy();
    const [code] = (await once(child, "exit")) as [number | null];
    assert.equal(code, 0);
  });
});
