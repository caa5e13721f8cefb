/** One attempt: a request goes out, and what comes back within the time limit is the outcome. */
import type { Dispatcher } from "undici";
import type { Clock } from "../base/clock.ts";
import { describeDuration } from "../base/duration.ts";
import type { Headers, Outcome } from "../jobs/outcome.ts";
import { isSecretHeader, MASK } from "../jobs/secret-headers.ts";
import { ResponseBody } from "./body.ts";
import { type Lookup, lookupBySystem } from "./connect.ts";
import { type Connection, type ConnectionPool, createConnectionPool } from "./connections.ts";
import type { EgressRules } from "./egress.ts";
import { type DeliveryError, explainExchange, type Stage, switchedProtocols, timedOut } from "./failure.ts";
import type { HttpRequest } from "./request.ts";

export interface Sender {
  /**
   * Makes one attempt. Whatever the target does, it resolves within `timeoutMs` of monotonic time, which covers DNS,
   * connecting, TLS, headers and body. Redirects are not followed and nothing is decompressed. Rejects with
   * `signal.reason` when the signal is aborted; any other rejection is a defect of Errand's.
   */
  send(request: HttpRequest, timeoutMs: number, signal: AbortSignal): Promise<Outcome>;
  /** Ends what is still under way, which then rejects. Resolves when no socket is left. */
  close(): Promise<void>;
}

/** @param lookup finds the addresses of names; the rules judge what it finds. */
export function createSender(rules: EgressRules, clock: Clock, lookup: Lookup = lookupBySystem): Sender {
  const pool = createConnectionPool(rules, lookup);
  const running = new Set<Attempt>();
  let isClosed = false;
  return {
    async send(request, timeoutMs, signal) {
      signal.throwIfAborted();
      if (isClosed) throw closedError();
      const attempt = new Attempt(pool, clock, timeoutMs);
      running.add(attempt);
      signal.addEventListener("abort", attempt);
      try {
        return await attempt.run(request);
      } finally {
        signal.removeEventListener("abort", attempt);
        running.delete(attempt);
      }
    },
    async close() {
      isClosed = true;
      for (const attempt of running) attempt.interrupt(closedError());
      await pool.close();
    },
  };
}

function closedError(): Error {
  return new Error("the sender is closed");
}

/** The life of one attempt, as undici tells it. Whatever comes first settles it; what comes later changes nothing. */
class Attempt implements Dispatcher.DispatchHandler {
  readonly #pool: ConnectionPool;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #startedAt: number;
  readonly #settled = Promise.withResolvers<Outcome>();
  #connection: Connection | null = null;
  #stopTimer: (() => void) | null = null;
  #isSettled = false;
  /** Zero until the headers of the final response have come. */
  #code = 0;
  #headers: Headers = {};
  readonly #body = new ResponseBody();

  constructor(pool: ConnectionPool, clock: Clock, timeoutMs: number) {
    this.#pool = pool;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#startedAt = clock.monotonic();
  }

  run({ method, url, headers, body }: HttpRequest): Promise<Outcome> {
    this.#stopTimer = this.#clock.timer(this.#timeoutMs, () => this.#onDeadline());
    const connection = this.#pool.take(url);
    this.#connection = connection;
    connection.client.dispatch({ method, path: url.pathname + url.search, headers, body }, this);
    return this.#settled.promise;
  }

  interrupt(reason: unknown): void {
    if (this.#finish()) this.#settled.reject(reason);
  }

  // The signal's listener is the attempt itself, which spares a closure.
  handleEvent(event: Event): void {
    if (event.target instanceof AbortSignal) this.interrupt(event.target.reason);
  }

  onRequestStart(): void {
    this.#connection?.expectResponse();
  }

  onResponseStart(
    _controller: unknown,
    code: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    if (code === 101) this.#fail(switchedProtocols(this.#connection?.target ?? ""));
    // The others of 1xx are not the answer yet (RFC 9110 §15.2).
    if (code < 200) return;
    this.#connection?.responseBegan();
    this.#code = code;
    this.#headers = storedHeaders(headers);
  }

  onResponseData(_controller: unknown, piece: Uint8Array): void {
    if (!this.#isSettled && !this.#body.add(piece)) this.#succeed(true);
  }

  onResponseEnd(): void {
    const connection = this.#connection;
    if (this.#isSettled || connection === null) return;
    this.#connection = null;
    this.#succeed(false);
    this.#pool.giveBack(connection);
  }

  onResponseError(_controller: unknown, error: Error): void {
    if (this.#isSettled || this.#connection === null) return;
    const explained = explainExchange(error, this.#stage, this.#connection.target);
    if (explained === null) this.interrupt(error);
    else this.#fail(explained);
  }

  get #stage(): Stage {
    return this.#code === 0 ? (this.#connection?.stage ?? "dns") : "response";
  }

  #onDeadline(): void {
    const target = this.#connection?.target ?? "";
    this.#fail(timedOut(this.#stage, target, describeDuration(this.#timeoutMs)));
  }

  #succeed(truncated: boolean): void {
    if (!this.#finish()) return;
    this.#settled.resolve({
      kind: "response",
      code: this.#code,
      headers: this.#headers,
      body: this.#body.bytes(),
      truncated,
      durationMs: this.#durationMs(),
    });
  }

  #fail({ code, message }: DeliveryError): void {
    if (!this.#finish()) return;
    this.#settled.resolve({ kind: "failure", code, message, durationMs: this.#durationMs() });
  }

  /** True the first time. Ends the connection, unless it was taken out to be used again. */
  #finish(): boolean {
    if (this.#isSettled) return false;
    this.#isSettled = true;
    this.#stopTimer?.();
    if (this.#connection !== null) this.#pool.drop(this.#connection);
    return true;
  }

  #durationMs(): number {
    return Math.round(this.#clock.monotonic() - this.#startedAt);
  }
}

/** Header values as they are kept: joined (RFC 9110 §5.3), and masked where they are secrets. */
function storedHeaders(headers: Readonly<Record<string, string | string[] | undefined>>): Headers {
  const stored: [string, string][] = [];
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) continue;
    stored.push([name, isSecretHeader(name) ? MASK : Array.isArray(value) ? value.join(", ") : value]);
  }
  return Object.fromEntries(stored);
}
