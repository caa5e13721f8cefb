/** Servers under test: each a process of its own, with its CPU time and memory readable from outside. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const KEY = "errand_test_0123456789abcdefghij0123456789";

const root = fileURLToPath(new URL("../..", import.meta.url));

export interface Server {
  readonly url: string;
  readonly folder: string;
  readonly pid: number;
  /** Milliseconds from the start of the process to its word that it listens. */
  readonly startedInMs: number;
  cpuSeconds(): number;
  memoryMb(): number;
  stop(options?: { keep?: boolean }): Promise<void>;
}

export const temporaryFolder = () => mkdtempSync(join(tmpdir(), "errand-bench-"));

/** The bundle as `npm start` runs it. */
export const BUNDLE_COMMAND = [
  process.execPath,
  "--max-semi-space-size=8",
  fileURLToPath(new URL("../../dist/errand.cjs", import.meta.url)),
];

/** Errand from its bundle, or from another command, without a rate limit. */
export function startErrand(
  options: { folder?: string; env?: Record<string, string>; command?: string[] } = {},
): Promise<Server> {
  return startProgram(options.command ?? BUNDLE_COMMAND, options);
}

/** A baseline beside this file, bundled as Errand is, so that both start from compiled code. */
export async function startBaseline(name: "bare-route" | "smallest" | "target"): Promise<Server> {
  const { build } = await import("esbuild");
  const outfile = join(root, `dist/bench-${name}.cjs`);
  await build({
    entryPoints: [join(root, `scripts/bench/${name}.ts`)],
    bundle: true,
    platform: "node",
    target: "node24",
    format: "cjs",
    outfile,
    external: ["better-sqlite3"],
    logLevel: "error",
  });
  return startProgram([process.execPath, outfile]);
}

/** A target in a process of its own: see target.ts. */
export const startTarget = () => startBaseline("target");

/** Any program that says its port as JSON when it is ready. */
export async function startProgram(
  command: string[],
  { folder = temporaryFolder(), env = {} }: { folder?: string; env?: Record<string, string> } = {},
): Promise<Server> {
  const [file = "", ...args] = command;
  const begun = performance.now();
  const child = spawn(file, args, {
    stdio: ["ignore", "pipe", "ignore"],
    cwd: folder,
    env: {
      ...process.env,
      ERRAND_PORT: "0",
      ERRAND_DATA_DIR: folder,
      ERRAND_TEST_KEY: KEY,
      ERRAND_RATE_LIMIT: "0",
      ERRAND_LOG_FORMAT: "json",
      ...env,
    },
  });
  let output = "";
  const port = await new Promise<string>((resolve, reject) => {
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      const found = /"port":(\d+)/.exec(output)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.once("exit", () => reject(new Error(`${file} ended:\n${output}`)));
  });
  const startedInMs = performance.now() - begun;
  const pid = child.pid ?? 0;
  return {
    url: `http://127.0.0.1:${port}`,
    folder,
    pid,
    startedInMs,
    cpuSeconds: () => cpuSeconds(pid),
    memoryMb: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024,
    async stop({ keep = false } = {}) {
      const gone = once(child, "exit");
      child.kill("SIGTERM");
      await gone;
      if (!keep) rmSync(folder, { recursive: true, force: true });
    },
  };
}

const TICKS_PER_SECOND = 100;

/** User and system time of a process (proc(5): fields 14 and 15 of stat). */
export function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}
