/** Makes attempts as the engine does, each against an upper limit of its own, and says what came of them. */
import type { TestContext } from "node:test";
import { systemClock } from "../../src/base/clock.ts";
import type { Lookup } from "../../src/delivery/connect.ts";
import { type EgressRules, egressRules } from "../../src/delivery/egress.ts";
import { buildRequest } from "../../src/delivery/request.ts";
import { createSender, type Sender } from "../../src/delivery/send.ts";
import type { Method } from "../../src/jobs/job.ts";
import type { Outcome } from "../../src/jobs/outcome.ts";

/** Base64; every attempt is signed with it. */
export const SECRET = Buffer.alloc(32, 1).toString("base64");

const DELIVERY = {
  jobId: "job_1",
  messageId: "job_1",
  attempt: 1,
  scheduleId: null,
  bodyHeaders: { "content-type": "application/json" },
  secrets: [`whsec_${SECRET}`],
};

/** Nothing listens there. */
export const LISTENING = { host: "127.0.0.1", port: 1 };

export const OPEN_RULES = egressRules({ deny: [], allow: [], listening: LISTENING });

export interface AttemptOptions {
  readonly method?: Method;
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array | null;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface Attempts {
  /** Rejects when the attempt takes over a second more than its timeout. */
  attempt(url: string, options?: AttemptOptions): Promise<Outcome>;
  close(): Promise<void>;
}

const closers = new WeakMap<TestContext, (() => Promise<void>)[]>();

/** Closes all senders of a test: targets call it before they look whether a connection was left behind. */
export async function closeAttempts(t: TestContext): Promise<void> {
  await Promise.all((closers.get(t) ?? []).map((close) => close()));
}

/** A sender of the test's own, which is closed after it. */
export function attempts(t: TestContext, rules: EgressRules = OPEN_RULES, lookup?: Lookup): Attempts {
  const sender: Sender = createSender(rules, systemClock, lookup);
  const close = (): Promise<void> => within(5_000, sender.close());
  closers.set(t, [...(closers.get(t) ?? []), close]);
  t.after(close);
  return {
    attempt(url, options = {}) {
      const {
        method = "POST",
        headers = {},
        body = "{}",
        timeoutMs = 5_000,
        signal = new AbortController().signal,
      } = options;
      const task = { method, url, headers };
      const request = buildRequest(
        { ...DELIVERY, task, body },
        Math.floor(systemClock.now() / 1_000),
        "0.0.0",
      );
      return within(timeoutMs + 1_000, sender.send(request, timeoutMs, signal));
    },
    close,
  };
}

/** The same promise, but rejected when it takes longer. */
export function within<T>(limitMs: number, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = systemClock.timer(limitMs, () => reject(new Error(`it took over ${limitMs} ms`)));
    promise.then(resolve, reject).finally(stop);
  });
}

/** An outcome in short, for tables: the status, or the error's code. */
export function inShort(outcome: Outcome): number | string {
  return outcome.code;
}
