// Runs the tests, from the sources, under the pinned Node.
//
//   node scripts/test.mjs                        everything but the folders below
//   node scripts/test.mjs crash http/auth        files and folders under test/
//   node scripts/test.mjs rules --test-name-pattern=backoff
import { spawnSync } from "node:child_process";
import fs from "node:fs"; // whole: an older Node, which may be the one that starts this, has no globSync
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** These need more than the sources: a browser, fault injection, the built executable. They run when named. */
const onlyWhenNamed = ["browser", "faults", "executable"];

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const pinned = join(root, "node_modules/.bin/node");
const node = fs.existsSync(pinned) ? pinned : process.execPath;

if (Number(process.versions.napi) < 10 && node === pinned) {
  process.exit(run([fileURLToPath(import.meta.url), ...process.argv.slice(2)]));
}

const flags = process.argv.slice(2).filter((argument) => argument.startsWith("-"));
const names = process.argv.slice(2).filter((argument) => !argument.startsWith("-"));
const files = names.length > 0 ? names.flatMap(named) : testFiles("**");
if (files.length === 0) {
  console.error(`No tests in ${names.join(", ") || "test/"}`);
  process.exit(1);
}

// Tests that start real processes run dist/errand.cjs, so it must be that of these sources.
const built = run(["build.mjs"]);
if (built !== 0 && names.length === 0) process.exit(built);

process.exit(
  run([
    "--import",
    import.meta.resolve("tsx"),
    "--import",
    new URL("text-modules.mjs", import.meta.url).href,
    "--import",
    new URL("whole-output.mjs", import.meta.url).href,
    "--test",
    "--test-reporter=spec",
    `--test-concurrency=${Math.max(2, availableParallelism())}`,
    "--test-timeout=120000",
    // A test that failed may leave a server behind; the run ends all the same.
    "--test-force-exit",
    ...flags,
    ...files,
  ]),
);

/** The test files that a name on the command line stands for: a folder under test/, or a file with or without its ending. */
function named(name) {
  const path = name.replace(/^(\.\/)?test\//, "").replace(/\/$/, "");
  const found = [`${path}/**`, path.replace(/(\.test)?(\.ts)?$/, "")].flatMap(testFiles);
  if (found.length === 0) console.error(`No tests in test/${path}`);
  return found;
}

function testFiles(pattern) {
  const glob = pattern.endsWith("**") ? `test/${pattern}/*.test.ts` : `test/${pattern}.test.ts`;
  const exclude = pattern === "**" ? onlyWhenNamed.map((folder) => `test/${folder}`) : [];
  return fs.globSync(glob, { cwd: root, exclude }).toSorted();
}

function run(parameters) {
  return spawnSync(node, parameters, { cwd: root, stdio: "inherit" }).status ?? 1;
}
