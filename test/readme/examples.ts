/** Finds the examples of a Markdown text, and runs them one after another in one shell, as a reader would paste them. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { temporaryFolder } from "../support/app.ts";

/**
 * A fenced `sh` block after the comment `<!-- example -->`. Each of its calls has to be answered with 2xx, or, after
 * `<!-- example 422 -->`, its last one with that status.
 */
export interface Example {
  readonly line: number;
  readonly script: string;
  readonly status: number | null;
}

export interface Result {
  readonly exitCode: number;
  readonly statuses: readonly string[];
  readonly output: string;
}

const EXAMPLE = /^<!-- example(?: (\d{3}))? -->\n+```sh\n([\s\S]*?)^```$/gm;

export function examplesIn(markdown: string): Example[] {
  const found = [...markdown.matchAll(EXAMPLE)];
  const markers = markdown.match(/^<!-- example/gm)?.length ?? 0;
  if (found.length < markers)
    throw new Error(`${markers - found.length} example comments have no sh block after them`);
  return found.map(({ index, 1: status, 2: script = "" }) => ({
    line: markdown.slice(0, index).split("\n").length,
    script,
    status: status === undefined ? null : Number(status),
  }));
}

/** Why examples cannot be run on this machine, or false. */
export function missingTools(): string | false {
  const missing = ["bash", "curl"].filter((tool) => find(tool) === null);
  return missing.length > 0 && `needs ${missing.join(" and ")}`;
}

function find(tool: string): string | null {
  const folders = (process.env["PATH"] ?? "").split(":");
  return folders.map((folder) => join(folder, tool)).find((file) => existsSync(file)) ?? null;
}

/** `replaced`: what stands in the examples, and what it is here. */
export async function runExamples(
  examples: readonly Example[],
  key: string,
  replaced: Readonly<Record<string, string>>,
): Promise<Result[]> {
  const folder = temporaryFolder();
  const bin = join(folder, "bin");
  mkdirSync(bin);
  const shim = join(bin, "curl");
  const program = fileURLToPath(new URL("curl.mjs", import.meta.url));
  writeFileSync(
    shim,
    `#!/bin/sh\nexec '${process.execPath}' '${program}' '${find("curl")}' "$EXAMPLE.statuses" "$@"\n`,
  );
  chmodSync(shim, 0o755);

  // Braces keep the variables of one example for those after it.
  const script = examples.map(({ script: text }, i) => {
    const file = join(folder, String(i));
    const here = Object.entries(replaced).reduce((all, [from, to]) => all.replaceAll(from, to), text);
    return `export EXAMPLE='${file}'\n{\n${here}\n} > '${file}.out' 2>&1\necho $? > '${file}.code'\n`;
  });
  const file = join(folder, "examples.sh");
  writeFileSync(file, script.join("\n"));
  const shell = spawn("bash", ["-uo", "pipefail", file], {
    cwd: folder,
    stdio: "ignore",
    env: { ...process.env, PATH: `${bin}:${process.env["PATH"]}`, ERRAND_API_KEY: key },
  });
  await once(shell, "close");

  const read = (i: number, ending: string) => {
    const file = join(folder, `${i}.${ending}`);
    return existsSync(file) ? readFileSync(file, "utf8") : "";
  };
  const results = examples.map((_, i) => ({
    exitCode: Number(read(i, "code") || "-1"),
    statuses: read(i, "statuses")
      .split("\n")
      .filter((line) => line !== ""),
    output: read(i, "out"),
  }));
  rmSync(folder, { recursive: true });
  return results;
}
