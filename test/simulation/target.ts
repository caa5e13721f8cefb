/** The scripted target in place of the Sender: answers as the seed says, and counts what reaches it at once. */

import type { Clock } from "../../src/base/clock.ts";
import { durationMs } from "../../src/base/duration.ts";
import type { HttpRequest } from "../../src/delivery/request.ts";
import type { Sender } from "../../src/delivery/send.ts";
import type { LaneLimits } from "../../src/engine/shares.ts";
import type { Outcome } from "../../src/jobs/outcome.ts";
import { isSuccess } from "../../src/jobs/retry.ts";
import type { QueueSettings } from "../../src/store/store.ts";
import { answerTo, expectedBody } from "./bodies.ts";
import type { Random } from "./random.ts";
import { exchangeName, type Witness } from "./witness.ts";

interface Exchange {
  readonly name: string;
  readonly jobId: string;
  readonly step: number | "cb";
  readonly origin: string;
  /** The queue whose limits it counts for; null for callbacks, which have none. */
  readonly queue: string | null;
  answer(outcome: Outcome): void;
}

const OK = 200;

export class Target {
  readonly open = new Set<Exchange>();
  /** Answers everything at once with success: the world is being brought to rest. */
  isKind = false;
  private readonly seen = new Set<string>();
  private readonly random: Random;
  private readonly witness: Witness;
  private readonly limits: LaneLimits;

  constructor(random: Random, witness: Witness, limits: LaneLimits) {
    this.random = random;
    this.witness = witness;
    this.limits = limits;
  }

  /** The service died: whoever was waiting for an answer is gone. A power cut may make it forget that it asked. */
  hangUp(forgetful: boolean): void {
    this.open.clear();
    if (forgetful) this.seen.clear();
  }

  answerAll(): void {
    for (const exchange of this.open) exchange.answer(respond(OK, exchange));
  }

  answerOne(): void {
    const exchange = this.random.pick([...this.open]);
    exchange?.answer(this.anyOutcome(exchange));
  }

  /** What a dead service would still send goes nowhere. */
  sender(clock: Clock, isOver: () => boolean): Sender {
    return {
      send: (request, timeoutMs, signal) =>
        isOver() ? new Promise(() => {}) : this.receive(clock, request, timeoutMs, signal),
      close: () => Promise.resolve(),
    };
  }

  private receive(
    clock: Clock,
    request: HttpRequest,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
    const exchange = this.accept(request, (outcome) => {
      stopTimer();
      if (!this.open.delete(exchange)) return;
      const job = this.witness.jobs.get(exchange.jobId);
      if (exchange.step !== "cb" && isSuccess(outcome)) job?.done.add(exchange.step);
      resolve(outcome);
    });
    let stopTimer = () => {};
    signal.addEventListener("abort", () => {
      stopTimer();
      this.open.delete(exchange);
      reject(signal.reason as Error);
    });

    const answersAt = this.isKind
      ? 0
      : this.random.weighted([
          [55, 0],
          [25, this.random.between(1, 1.5 * timeoutMs)],
          [20, Infinity],
        ]);
    if (answersAt === 0) exchange.answer(this.isKind ? respond(OK, exchange) : this.anyOutcome(exchange));
    else if (answersAt < timeoutMs)
      stopTimer = clock.timer(answersAt, () => exchange.answer(this.anyOutcome(exchange)));
    else stopTimer = clock.timer(timeoutMs, () => exchange.answer(fail("timeout", timeoutMs)));
    return promise;
  }

  private accept(request: HttpRequest, answer: (outcome: Outcome) => void): Exchange {
    const headers = new Map<string, string>();
    for (let i = 0; i < request.headers.length; i += 2)
      headers.set(request.headers[i]!.toLowerCase(), request.headers[i + 1]!);
    const jobId = headers.get("errand-job-id") ?? "";
    const attempt = Number(headers.get("errand-attempt"));
    const part = request.url.pathname.split("/")[2];
    const step = part === "callback" ? "cb" : Number(part ?? 0);
    const claim = this.witness.claimOf(jobId, step, attempt);
    const name = exchangeName(this.witness.label(jobId), part, attempt);
    if (claim === undefined) this.witness.violate(`the target received ${name}, which was never claimed`);
    else this.witness.sent(claim, name);
    if (step !== "cb") {
      const key = `${jobId}/${step}/${attempt}`;
      if (this.seen.has(key)) this.witness.violate(`the target received ${name} twice`);
      this.seen.add(key);
      this.checkBody(jobId, step, request.body, name);
    }
    const queue =
      claim === undefined || step === "cb" ? null : this.witness.queue(claim.job.tenant, claim.job.queue);
    const exchange: Exchange = {
      name,
      jobId,
      step,
      origin: request.url.origin,
      queue: queue === null ? null : `${queue.tenant.mode} ${queue.name}`,
      answer: (outcome) => {
        this.witness.trace.add(`target answers ${name}: ${outcome.code}`);
        answer(outcome);
      },
    };
    this.open.add(exchange);
    this.checkLimits(exchange);
    const inQueue = this.count((other) => other.queue === exchange.queue);
    const isBeyond = ({ paused, concurrency }: QueueSettings) =>
      paused || inQueue > (concurrency ?? Infinity);
    if (queue !== null && queue.breaks(isBeyond))
      this.witness.violate(`${name} is number ${inQueue} at once of its queue, ${queue.text}`);
    return exchange;
  }

  /** A step sends its payload with every reference filled in, or what the step before it answered. */
  private checkBody(jobId: string, step: number, body: HttpRequest["body"], name: string): void {
    const job = this.witness.jobs.get(jobId);
    if (job === undefined || job.wanted === null) return;
    const expected = expectedBody(job.wanted, step, (earlier) => this.witness.lastExchange(jobId, earlier));
    const text = body === null ? null : typeof body === "string" ? body : Buffer.from(body).toString();
    if (expected === "unresolved")
      this.witness.violate(`the target received ${name}, of which a reference finds nothing: ${text}`);
    else if (text !== expected.body)
      this.witness.violate(`the target received ${text} as the body of ${name} in place of ${expected.body}`);
  }

  private checkLimits({ name, origin }: Exchange): void {
    const here = this.count((other) => other.origin === origin);
    if (this.open.size > this.limits.total)
      this.witness.violate(`${name} is number ${this.open.size} at once, limit ${this.limits.total}`);
    if (here > this.limits.perOrigin)
      this.witness.violate(`${name} is number ${here} at once at ${origin}, limit ${this.limits.perOrigin}`);
  }

  private count(matches: (exchange: Exchange) => boolean): number {
    let count = 0;
    for (const exchange of this.open) if (matches(exchange)) count += 1;
    return count;
  }

  private anyOutcome(exchange: Exchange): Outcome {
    return this.random.weighted<() => Outcome>([
      [60, () => respond(OK, exchange)],
      [15, () => respond(500, exchange)],
      [5, () => respond(404, exchange)],
      [5, () => respond(301, exchange)],
      [5, () => respond(503, exchange, { "retry-after": String(durationMs("2s") / 1_000) })],
      [5, () => fail("connect", 3)],
      [5, () => fail("reset", 40)],
    ])();
  }
}

function respond(code: number, { name }: Exchange, headers: Record<string, string> = {}): Outcome {
  const body = Buffer.from(answerTo(name));
  return { kind: "response", code, headers, body, truncated: false, durationMs: 5 };
}

function fail(code: "timeout" | "connect" | "reset", durationMs: number): Outcome {
  return { kind: "failure", code, message: `The target failed: ${code}.`, durationMs };
}
