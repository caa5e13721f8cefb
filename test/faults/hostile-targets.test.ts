/** A hundred hostile targets beside a service that runs as `npm start` runs it. */
import { readFileSync } from "node:fs";
import { delimiter } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { withstandsHostileTargets } from "./hostile-targets.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

test("a hundred hostile targets at once", async (t) => {
  // The script as npm runs it, but without npm in between, so that the process is Errand's.
  const { scripts } = JSON.parse(readFileSync(`${root}package.json`, "utf8"));
  const PATH = `${root}node_modules/.bin${delimiter}${process.env["PATH"]}`;
  await withstandsHostileTargets(t, {
    command: ["sh", "-c", scripts.start],
    cwd: root,
    onlyEnv: { ...process.env, PATH },
  });
});
