/** The house stays as it was drawn: who imports whom, no cycles, short files, one clock, honest types. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { stateDiagram } from "../../scripts/diagram.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const SRC = join(ROOT, "src");

interface Source {
  readonly text: string;
  readonly lines: readonly string[];
  /** Files under src/ that it imports; with types, or only what is left when the program runs. */
  readonly imports: readonly string[];
  readonly packages: readonly string[];
  readonly runtimeImports: readonly string[];
}

const IMPORT =
  /(?:^|\n)\s*(?:import|export)\s+(type\s)?[^"';]*?from\s+"([^"]+)"|(?:^|\n)import\s+"([^"]+)"|import\(\s*"([^"]+)"\s*\)/g;

const sources = new Map<string, Source>(
  globSync("**/*.{ts,tsx}", { cwd: SRC }).map((file) => {
    const text = readFileSync(join(SRC, file), "utf8");
    const found = [...text.matchAll(IMPORT)].map((match) => ({
      isType: match[1] !== undefined,
      to: match[2] ?? match[3] ?? match[4] ?? "",
    }));
    const inside = found.filter(({ to }) => to.startsWith("."));
    const resolve = ({ to }: { to: string }) => normalize(join(dirname(file), to));
    return [
      file,
      {
        text,
        lines: text.trimEnd().split("\n"),
        imports: inside.map(resolve),
        packages: found.filter(({ to }) => !to.startsWith(".")).map(({ to }) => to),
        runtimeImports: inside.filter(({ isType }) => !isType).map(resolve),
      },
    ];
  }),
);

/** Folders under src/, and what each may import. Its own folder it may always. */
const RULES = ["base", "jobs", "schedules", "accounts"];
const MAY_IMPORT: Record<string, readonly string[]> = {
  base: [],
  jobs: ["base", "accounts"],
  schedules: ["base", "jobs"],
  accounts: ["base"],
  delivery: ["base", "jobs"],
  store: RULES,
  engine: [...RULES, "store", "delivery"],
  operations: [...RULES, "store", "engine"],
  client: ["base", "operations"],
  http: [...RULES, "store", "engine", "operations"],
  // MCP over HTTP is one more path of the same server.
  mcp: [...RULES, "store", "engine", "operations", "client", "http"],
  // `errand mcp` speaks MCP over stdio.
  cli: [...RULES, "operations", "client", "mcp"],
};
/** What puts the house together, or works on the data folder itself. */
const COMPOSITION = new Set([
  "app.ts",
  "main.ts",
  "serve.ts",
  "config.ts",
  "first-boot.ts",
  "version.ts",
  "data-folder.ts",
]);

const folderOf = (file: string) => file.split("/")[0] ?? "";

describe("imports", () => {
  test("were found", () => {
    assert.ok(sources.size > 80);
    const all = [...sources.values()].flatMap(({ imports }) => imports);
    assert.ok(all.length > 300);
    for (const file of all) if (/\.tsx?$/.test(file)) assert.ok(sources.has(file), file);
  });

  test("go one way", () => {
    const wrong: string[] = [];
    for (const [file, { imports }] of sources) {
      if (COMPOSITION.has(file)) continue;
      const folder = folderOf(file);
      const allowed = MAY_IMPORT[folder];
      if (allowed === undefined) {
        wrong.push(`${file} lies in no known layer`);
        continue;
      }
      for (const to of imports) {
        const other = folderOf(to);
        const isOutside = to.startsWith("..") || to === "version.ts";
        if (isOutside || other === folder || allowed.includes(other)) continue;
        wrong.push(`${file} imports ${to}`);
      }
    }
    assert.deepEqual(wrong, []);
  });

  test("reach SQLite, the engine's inside and the network only from where they belong", () => {
    const wrong: string[] = [];
    for (const [file, { imports, runtimeImports, packages }] of sources) {
      if (COMPOSITION.has(file)) continue;
      const folder = folderOf(file);
      if (folder !== "store" && imports.some((to) => to.startsWith("store/sqlite/")))
        wrong.push(`${file}: adapter`);
      if (folder !== "store" && packages.some((name) => /^(better-sqlite3|drizzle-orm)/.test(name)))
        wrong.push(`${file}: SQLite`);
      if (folder !== "delivery" && packages.includes("undici")) wrong.push(`${file}: undici`);
      if (file !== "schedules/cron.ts" && packages.includes("cron-parser"))
        wrong.push(`${file}: cron-parser`);
      const isDoor = ["operations", "http", "mcp", "cli"].includes(folder);
      // The feed is what a door listens to; of the rest of the engine it knows nothing.
      if (isDoor && runtimeImports.some((to) => to.startsWith("engine/") && to !== "engine/events.ts"))
        wrong.push(`${file}: engine`);
    }
    assert.deepEqual(wrong, []);
  });

  test("make no circle", () => {
    const done = new Set<string>();
    const visit = (file: string, path: readonly string[]) => {
      const at = path.indexOf(file);
      assert.equal(at, -1, `a circle: ${[...path.slice(at), file].join(" → ")}`);
      if (done.has(file)) return;
      for (const to of sources.get(file)?.runtimeImports ?? []) visit(to, [...path, file]);
      done.add(file);
    };
    for (const file of sources.keys()) visit(file, []);
  });
});

describe("every file", () => {
  const offenders = (pattern: RegExp, except: readonly string[] = []) =>
    [...sources]
      .filter(
        ([file, { lines }]) =>
          !except.includes(file) && lines.some((line) => pattern.test(withoutComment(line))),
      )
      .map(([file]) => file);

  test("opens with what it is for, and is at most 350 lines long", () => {
    for (const [file, { lines }] of sources) {
      assert.match(lines[0] ?? "", /^\/\*\*|^\/\//, file);
      assert.ok(lines.length <= 350, `${file} has ${lines.length} lines`);
    }
  });

  test("reads time through base/clock.ts", () => {
    const clocks =
      /\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\b|\bprocess\.hrtime\b|\bset(Timeout|Interval)\(/;
    assert.deepEqual(offenders(clocks, ["base/clock.ts"]), []);
  });

  test("has honest types", () => {
    assert.deepEqual(offenders(/\bas unknown as\b/, ["operations/operation.ts"]), []);
    assert.deepEqual(offenders(/\bas any\b|: any\b|<any>|\bany\[\]|@ts-(ignore|expect-error|nocheck)/), []);
  });

  test("is finished and has a name that says something", () => {
    assert.deepEqual(
      [...sources].filter(([, { text }]) => /\b(TODO|FIXME|XXX|HACK)\b/.test(text)).map(([file]) => file),
      [],
    );
    const vague = /(^|\/)(utils?|helpers?|common|types|misc|shared|index)\.tsx?$/;
    assert.deepEqual(
      [...sources.keys()].filter((file) => vague.test(file) && file !== "operations/index.ts"),
      [],
    );
  });
});

test("ARCHITECTURE.md is short and shows the lifecycle as it is", () => {
  const text = readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8");
  assert.ok(text.split("\n").length <= 150);
  assert.ok(text.includes(stateDiagram()), "run: node --import tsx scripts/diagram.ts");
  for (const [, path] of text.matchAll(/`(src\/[\w./-]+\.ts)`/g))
    assert.ok(sources.has(path!.slice(4)), path);
});

function withoutComment(line: string): string {
  return line.replace(/^\s*(\*|\/\/|\/\*).*/, "").replace(/\s\/\/ .*/, "");
}
