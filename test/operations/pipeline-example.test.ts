/** The README's pipeline, run as it stands there: only the hosts are others. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { promisify } from "node:util";
import { startTestApp } from "../support/app.ts";
import { startTarget } from "../support/target.ts";

const HEADING = "## Pipelines: several requests, one job";
const ANSWERS: Record<string, unknown> = {
  "/orders/find": { charge: { id: "ch_9", cents: 1999 } },
  "/refunds": { refund: "re_1" },
  "/receipts": { mailed: true },
};

/** The fenced blocks of the section, by their language, in order. */
function blocks(language: string): string[] {
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
  const section = readme.split(HEADING)[1]?.split("\n## ")[0] ?? "";
  return [...section.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].flatMap((match) =>
    match[1] === language ? [match[2]!] : [],
  );
}

test("the pipeline in the README does what the README says", async (t) => {
  const app = await startTestApp();
  t.after(() => app.stop());
  const target = await startTarget(({ path }) => ({ body: JSON.stringify(ANSWERS[path] ?? {}) }));
  t.after(() => target.close());

  const run = async (command: string, job = ""): Promise<Record<string, any>> => {
    const here = command
      .replaceAll("http://localhost:3000", app.url)
      .replaceAll(/https:\/\/\w+\.example\.com/g, new URL(target.url).origin);
    const env = { ...process.env, ERRAND_API_KEY: app.key, JOB: job };
    const { stdout } = await promisify(execFile)("sh", ["-c", here], { env });
    return JSON.parse(stdout);
  };

  const commands = blocks("sh");
  assert.equal(commands.length, 4);
  const [create, look, approve, wait] = commands as [string, string, string, string];
  const { id } = await run(create);
  assert.match(id, /^job_/);

  let seen = await run(look, id);
  while (seen["status"] !== "awaiting_approval") seen = await run(look, id);
  const [shown] = blocks("json");
  assert.partialDeepStrictEqual(seen, JSON.parse(shown!));
  assert.equal(target.received.length, 1);

  const approved = await run(approve, id);
  assert.equal(approved["approval_note"], "saw the photos");
  const done = await run(wait, id);
  assert.equal(done["status"], "completed", done["last_error"]);
  assert.deepEqual(done["response_body"], { mailed: true });

  const ended = await target.request(4);
  assert.equal(JSON.parse(ended.body).type, "job.completed");
  assert.deepEqual(
    target.received.map(({ path, body }) => [path, path === "/refund-ended" ? null : JSON.parse(body)]),
    [
      ["/orders/find", { order: 4711, reason: "arrived broken" }],
      ["/refunds", { charge: "ch_9", cents: 1999, reason: "arrived broken" }],
      ["/receipts", { refund: "re_1" }],
      ["/refund-ended", null],
    ],
  );
});
