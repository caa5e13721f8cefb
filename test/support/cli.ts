/** The command line as its users run it: the bundle as a process of its own. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { TestApp } from "./app.ts";

export const BUNDLE = fileURLToPath(new URL("../../dist/errand.cjs", import.meta.url));

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface CliOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly stdin?: string;
}

/** Runs `errand …` with nothing in its environment but what is given. */
export function runCli(args: readonly string[], options: CliOptions = {}): Promise<Ran> {
  const child = startCli(args, options);
  let out = "";
  let err = "";
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  child.stdin.end(options.stdin ?? "");
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, out, err }));
  });
}

export function startCli(
  args: readonly string[],
  { env = {}, cwd }: CliOptions = {},
): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, [BUNDLE, ...args], {
    env: { PATH: process.env["PATH"], ...env },
    ...(cwd === undefined ? {} : { cwd }),
  });
}

/** `errand …` as a client of this app. */
export function cliOf(app: TestApp): (args: readonly string[], options?: CliOptions) => Promise<Ran> {
  const env = { ERRAND_URL: app.url, ERRAND_API_KEY: app.key };
  return (args, options = {}) => runCli(args, { ...options, env: { ...env, ...options.env } });
}
