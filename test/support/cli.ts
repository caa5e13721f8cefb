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
  return ran(startCli(args, options), options.stdin);
}

export function startCli(args: readonly string[], options: CliOptions = {}): ChildProcessWithoutNullStreams {
  return start(process.execPath, [BUNDLE, ...args], options);
}

/** Runs `errand …` on a terminal of so many columns. Null where `script`, which makes one, is not installed. */
export async function runOnTerminal(
  columns: number,
  args: readonly string[],
  options: CliOptions = {},
): Promise<string | null> {
  const command = `stty cols ${columns}; exec "${process.execPath}" "${BUNDLE}" ${args.join(" ")}`;
  const env = { TERM: "xterm", ...options.env };
  try {
    const { out } = await ran(start("script", ["-qec", command, "/dev/null"], { ...options, env }), "");
    return out.replaceAll("\r\n", "\n");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}

function start(
  file: string,
  args: readonly string[],
  { env = {}, cwd }: CliOptions,
): ChildProcessWithoutNullStreams {
  return spawn(file, args, {
    env: { PATH: process.env["PATH"], ...env },
    ...(cwd === undefined ? {} : { cwd }),
  });
}

function ran(child: ChildProcessWithoutNullStreams, stdin = ""): Promise<Ran> {
  let out = "";
  let err = "";
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  // A command that ends without reading closes the pipe.
  child.stdin.on("error", () => {});
  child.stdin.end(stdin);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, out, err }));
  });
}

/** `errand …` as a client of this app. */
export function cliOf(app: TestApp): (args: readonly string[], options?: CliOptions) => Promise<Ran> {
  const env = { ERRAND_URL: app.url, ERRAND_API_KEY: app.key };
  return (args, options = {}) => runCli(args, { ...options, env: { ...env, ...options.env } });
}
