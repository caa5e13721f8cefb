/** What ships that others wrote: under licences that allow it, pinned to the byte, and declared. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** They ask for nothing but that their text and the names stay. */
const ALLOWED_LICENCES = new Set(["MIT", "ISC", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "Apache-2.0"]);

interface Installed {
  readonly version: string;
  readonly license?: string;
  readonly integrity?: string;
  readonly dev?: boolean;
}

const json = (file: string) => JSON.parse(readFileSync(join(ROOT, file), "utf8"));
const manifest = json("package.json");
const { "": _, ...installed } = json("package-lock.json").packages as Record<string, Installed>;

/** Folders of the packages that code of the program comes from. */
async function bundled(): Promise<string[]> {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ["src/main.ts", "src/store/sqlite/worker.ts"],
    bundle: true,
    write: false,
    outdir: "dist",
    metafile: true,
    platform: "node",
    loader: { ".sql": "text", ".html": "text", ".css": "text", ".svg": "text" },
    logLevel: "error",
  });
  const folders = Object.keys(metafile.inputs).map(
    // The last one: packages may hold packages.
    (file) => /^(?:.*\/)?(node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1],
  );
  return [...new Set(folders)].filter((folder) => folder !== undefined).toSorted();
}

describe("dependencies", () => {
  test("what goes into the program is declared as such, under an allowed licence", async (t) => {
    const folders = await bundled();
    assert.ok(folders.includes("node_modules/hono"));
    for (const folder of folders) {
      assert.equal(installed[folder]?.dev, undefined, `${folder} is only a dependency of the developers`);
      const { name, version, license } = json(`${folder}/package.json`);
      assert.ok(ALLOWED_LICENCES.has(license), `${name} ${version}: ${license}`);
    }
    t.diagnostic(folders.map((folder) => folder.replace("node_modules/", "")).join(", "));
  });

  test("so is all that comes with it, by the lock file", () => {
    for (const [folder, { license, dev }] of Object.entries(installed))
      if (dev !== true) assert.ok(ALLOWED_LICENCES.has(license ?? ""), `${folder}: ${license}`);
  });

  test("each is pinned: one version, and the hash of its archive", () => {
    const { dependencies, devDependencies, optionalDependencies } = manifest;
    for (const [name, version] of Object.entries({
      ...dependencies,
      ...devDependencies,
      ...optionalDependencies,
    }))
      assert.match(String(version), /^\d+\.\d+\.\d+(-[\w.]+)?$/, name);
    // But for developers' tools for other machines than this one: npm leaves the hashes of those out.
    for (const [folder, { integrity, dev }] of Object.entries(installed))
      if (dev !== true || existsSync(join(ROOT, folder))) assert.match(integrity ?? "", /^sha512-/, folder);
  });

  test("none runs a script when it is installed", () => {
    assert.match(readFileSync(join(ROOT, ".npmrc"), "utf8"), /^ignore-scripts=true$/m);
  });
});
