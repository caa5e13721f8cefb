/** `errand schedules apply` of a file with a wrong schedule in it: which one it is, and what was applied before it. */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startTestApp, type TestApp, temporaryFolder } from "../support/app.ts";
import { cliOf } from "../support/cli.ts";

const FAULT = `schedule "second" (index 1): urll is not a field of this request`;

describe("errand schedules apply", () => {
  let app: TestApp;
  let errand: ReturnType<typeof cliOf>;
  const folder = temporaryFolder();
  const file = join(folder, "schedules.json");
  before(async () => {
    app = await startTestApp();
    errand = cliOf(app);
    const good = { cron_expr: "@daily", timezone: "UTC", url: "http://127.0.0.1:9/" };
    const wrong = { cron_expr: "@daily", timezone: "UTC", urll: "http://127.0.0.1:9/" };
    const list = [
      { ...good, name: "first" },
      { ...wrong, name: "second" },
      { ...good, name: "third" },
    ];
    writeFileSync(file, JSON.stringify(list));
  });
  after(async () => {
    await app.stop();
    rmSync(folder, { recursive: true });
  });

  test("for people: what was applied, then the one that was refused", async () => {
    const { code, out, err } = await errand(["schedules", "apply", "-f", file]);
    assert.equal(code, 2);
    assert.match(out, /^created +first {2}sch_\w{26}\n$/);
    assert.ok(err.startsWith(`errand: ${file}: ${FAULT}`), err);
    assert.match(err, /^[^\n]+\(invalid_request, req_\w{26}\)\n$/);
  });

  test("for programs: the problem document has both", async () => {
    for (const format of ["json", "ndjson"]) {
      const { code, out, err } = await errand(["schedules", "apply", "-f", file, "-o", format]);
      assert.equal(code, 2);
      const { schedule, applied, ...problem } = JSON.parse(out);
      assert.equal(problem.code, "invalid_request");
      assert.deepEqual(schedule, { name: "second", index: 1 });
      assert.deepEqual(
        applied.map(({ name, result }: { name: string; result: string }) => `${name} ${result}`),
        ["first unchanged"],
      );
      assert.ok(err.startsWith(`errand: ${file}: ${FAULT}`), err);
    }
  });

  test("the ids of those before it are printed", async () => {
    const { code, out } = await errand(["schedules", "apply", "-f", file, "-o", "id"]);
    assert.equal(code, 2);
    assert.match(out, /^sch_\w{26}\n$/);
  });

  test("a file from stdin is called so", async () => {
    const stdin = JSON.stringify([{ name: "second", cron_expr: "@daily", urll: "x" }]);
    const { err } = await errand(["schedules", "apply", "-f", "-"], { stdin });
    assert.match(err, /^errand: stdin: schedule "second" \(index 0\): /);
  });
});
