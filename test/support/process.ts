/** Errand as a real process: the bundle, or any other executable, on a free port and a folder of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Answer, temporaryFolder } from "./app.ts";

/** What `npm run build` makes. */
export const BUNDLE = fileURLToPath(new URL("../../dist/errand.cjs", import.meta.url));

export interface ProcessOptions {
  readonly folder?: string;
  readonly env?: Record<string, string>;
  /** The executable and its first arguments; the bundle under this Node by default. */
  readonly command?: readonly [file: string, ...args: string[]];
  readonly args?: readonly string[];
  readonly cwd?: string;
  /** In place of this process's environment. */
  readonly onlyEnv?: Record<string, string>;
}

export interface TestProcess {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly folder: string;
  readonly key: string;
  /** Everything printed so far. */
  readonly output: () => string;
  call<T = Record<string, any>>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer<T>>;
  /** Resolves when what was printed so far matches. */
  printed(pattern: RegExp): Promise<void>;
  /** Resolves when the process is gone, for whatever reason. */
  readonly gone: Promise<unknown>;
  /** kill -9; resolves when the process is gone. */
  kill(): Promise<void>;
  /** SIGTERM; the exit code. */
  stop(): Promise<number | null>;
  /** Kills it if it still runs, and removes the folder. */
  cleanUp(): Promise<void>;
}

/** Resolves when the service listens; rejects with what it printed when it ends before that. */
export async function startProcess(options: ProcessOptions = {}): Promise<TestProcess> {
  const folder = options.folder ?? temporaryFolder();
  const [file, ...first] = options.command ?? [process.execPath, BUNDLE];
  const child = spawn(file, [...first, ...(options.args ?? [])], {
    cwd: options.cwd,
    env: {
      ...(options.onlyEnv ?? process.env),
      ERRAND_DATA_DIR: folder,
      ERRAND_PORT: "0",
      ERRAND_LOG_FORMAT: "json",
      ...options.env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const gone = once(child, "exit");
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const port = await listening(child, () => output);
  const url = `http://127.0.0.1:${port}`;
  const key = readFileSync(join(folder, "test-key"), "utf8").trim();

  return {
    url,
    port,
    pid: child.pid ?? 0,
    folder,
    key,
    gone,
    output: () => output,
    printed: (pattern) =>
      new Promise((resolve) => {
        const look = () => {
          if (pattern.test(output)) resolve();
        };
        child.stdout.on("data", look);
        look();
      }),
    async call<T>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
      const response = await fetch(url + path, {
        method,
        headers: {
          authorization: `Bearer ${key}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      });
      const text = await response.text();
      const isJson = /json/.test(response.headers.get("content-type") ?? "");
      return {
        status: response.status,
        headers: response.headers,
        text,
        body: (isJson ? JSON.parse(text) : null) as T,
      };
    },
    async kill() {
      child.kill("SIGKILL");
      await gone;
    },
    async stop() {
      child.kill("SIGTERM");
      const [code] = (await gone) as [number | null];
      return code;
    },
    async cleanUp() {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill("SIGKILL");
        await gone;
      }
      if (existsSync(folder)) rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The port of the log line that says where it listens. */
function listening(child: ChildProcess, output: () => string): Promise<number> {
  return new Promise((resolve, reject) => {
    const look = () => {
      const port = /"port":(\d+)[^\n]*"msg":"Errand is listening"/.exec(output())?.[1];
      if (port !== undefined) resolve(Number(port));
    };
    child.stdout?.on("data", look);
    child.once("exit", (code) => reject(new Error(`ended with ${code} before it listened:\n${output()}`)));
    child.once("error", reject);
  });
}
