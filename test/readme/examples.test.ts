/** Every example of the README is run against a real Errand, in the order in which a reader meets them. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { startTestApp } from "../support/app.ts";
import { startTarget } from "../support/target.ts";
import { examplesIn, missingTools, runExamples } from "./examples.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const files = ["README.md"];

for (const file of files) {
  const examples = examplesIn(readFileSync(`${root}${file}`, "utf8"));
  if (examples.length === 0) continue;
  test(`the examples of ${file}`, { skip: missingTools() }, async (t) => {
    const app = await startTestApp();
    const target = await startTarget();
    t.after(() => app.stop());
    t.after(() => target.close());
    const results = await runExamples(examples, app.key, {
      "http://localhost:3000": app.url,
      "https://example.com": new URL(target.url).origin,
    });
    for (const [i, { line, status }] of examples.entries()) {
      const { exitCode, statuses, output } = results[i]!;
      const what = `${file}:${line} ${statuses.join(", ")}\n${output}`;
      assert.equal(exitCode, 0, what);
      assert.notEqual(statuses.length, 0, `${what}: it makes no call`);
      const last = statuses.at(-1)!;
      if (status !== null) assert.equal(last, String(status), what);
      const good = status === null ? statuses : statuses.slice(0, -1);
      for (const one of good) assert.match(one, /^2\d\d$/, what);
    }
  });
}

test("an example that fails is found", { skip: missingTools() }, async (t) => {
  const app = await startTestApp();
  t.after(() => app.stop());
  const examples = examplesIn(
    `<!-- example 404 -->\n\`\`\`sh\nA=1; curl -s http://errand/v1/jobs/job_0\n\`\`\`\n\ntext\n\n` +
      `<!-- example -->\n\n\`\`\`sh\ncurl -s http://errand/livez; test $A = 2\n\`\`\`\n`,
  );
  assert.deepEqual(
    examples.map(({ line, status }) => [line, status]),
    [
      [1, 404],
      [8, null],
    ],
  );
  const [first, second] = await runExamples(examples, app.key, { "http://errand": app.url });
  assert.deepEqual(first?.statuses, ["401"]);
  assert.equal(first?.exitCode, 0);
  assert.match(first?.output ?? "", /"code":"unauthorized"/);
  assert.deepEqual(second?.statuses, ["200"]);
  assert.equal(second?.exitCode, 1);
  assert.throws(() => examplesIn("<!-- example -->\ntext"), /no sh block/);
});
