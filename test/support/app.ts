/** Errand in this process on a temporary folder and a free port, spoken to over real HTTP. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startApp } from "../../src/app.ts";
import type { Clock } from "../../src/base/clock.ts";
import { type Config, readConfig } from "../../src/config.ts";
import { assertConforms } from "./conforms.ts";

export const TEST_KEY = "errand_test_0123456789abcdefghij0123456789";

/** A longer answer holds hundreds of things that are all alike; to check each would take most of a test's time. */
const LONG_ANSWER = 200_000;

export interface Answer<T = Record<string, unknown>> {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: T;
}

export interface TestApp {
  readonly url: string;
  readonly port: number;
  readonly folder: string;
  readonly key: string;
  /** A call with the test key; its answer has to be one that the API description has. `body` is sent as JSON, a string as it is. */
  call<T = Record<string, any>>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer<T>>;
  /** Creates a job and answers it; throws when that was refused. */
  createJob(fields: Record<string, unknown>): Promise<Record<string, any>>;
  /** The job once it has ended. */
  ended(id: string): Promise<Record<string, any>>;
  /** Stops the service, and removes its folder unless `keep` is set. */
  stop(options?: { keep?: boolean }): Promise<void>;
}

export interface TestAppOptions {
  readonly config?: Partial<Config>;
  readonly clock?: Clock;
  /** An existing data folder, to start on what an earlier service left. */
  readonly folder?: string;
}

export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), "errand-test-"));
}

export async function startTestApp({
  config = {},
  clock,
  folder = temporaryFolder(),
}: TestAppOptions = {}): Promise<TestApp> {
  const standard = readConfig({ ERRAND_PORT: "0", ERRAND_TEST_KEY: TEST_KEY, ERRAND_LOG_LEVEL: "silent" });
  const app = await startApp({ ...standard, dataDir: folder, ...config }, clock);
  const url = `http://127.0.0.1:${app.port}`;

  async function call<T>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer<T>> {
    const response = await fetch(url + path, {
      method,
      headers: {
        authorization: `Bearer ${TEST_KEY}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    if (text.length < LONG_ANSWER)
      assertConforms(method, path, { status: response.status, headers: response.headers, text });
    const isJson = /json/.test(response.headers.get("content-type") ?? "");
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: (isJson && text !== "" ? JSON.parse(text) : null) as T,
    };
  }

  return {
    url,
    port: app.port,
    folder,
    key: TEST_KEY,
    call,
    async createJob(fields) {
      const { status, text, body } = await call<Record<string, any>>("POST", "/v1/jobs", fields);
      if (status !== 201) throw new Error(`create answered ${status}: ${text}`);
      return body;
    },
    async ended(id) {
      const { body } = await call<Record<string, any>>("GET", `/v1/jobs/${id}?wait=30s`);
      return body;
    },
    async stop({ keep = false } = {}) {
      await app.stop();
      if (!keep) rmSync(folder, { recursive: true, force: true });
    },
  };
}
