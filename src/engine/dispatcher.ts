/** Claims what is due, sends it, settles the outcome. */
import type { Clock } from "../base/clock.ts";
import { durationMs } from "../base/duration.ts";
import type { Logger } from "../base/log.ts";
import { buildRequest, type Delivery } from "../delivery/request.ts";
import type { Sender } from "../delivery/send.ts";
import { interrupt, release, type Settlement, settle } from "../jobs/lifecycle.ts";
import type { Outcome } from "../jobs/outcome.ts";
import { jsonBody, stepBody, type UnresolvedReference } from "../jobs/pipeline.ts";
import type { Change, Claim, Store } from "../store/store.ts";
import { Lanes } from "./lanes.ts";
import { Loop } from "./loop.ts";
import { type LaneLimits, standingAfter } from "./shares.ts";

export interface DispatcherParts {
  readonly store: Store;
  readonly sender: Sender;
  readonly clock: Clock;
  readonly limits: LaneLimits;
  readonly version: string;
  readonly log: Logger;
  /** Told of each attempt that ended, for the metrics. */
  readonly onAttempt?: (claim: Claim, outcome: Outcome) => void;
}

/** The pause before what the store could not do is asked of it again. */
const STORE_PAUSE_MS = 500;

export class Dispatcher {
  private readonly parts: DispatcherParts;
  private readonly lanes: Lanes;
  private readonly loop: Loop;
  private readonly deliveries = new Set<Promise<void>>();
  private readonly shutdown = new AbortController();
  private unsubscribe = () => {};

  constructor(parts: DispatcherParts) {
    this.parts = parts;
    this.lanes = new Lanes(parts.limits);
    this.loop = new Loop(
      (now) => this.step(now),
      parts.clock,
      (error) => parts.log.error({ err: error }, "claiming failed; trying again"),
    );
  }

  /** Settles what the last process left behind. Nothing may be under way. */
  async recover(): Promise<void> {
    const { store, clock, log } = this.parts;
    const orphans = await store.engine.recover((job, stepName) => interrupt(job, stepName, clock.now()));
    if (orphans > 0) log.warn({ orphans }, "attempts that a stop of the service interrupted are due again");
  }

  /** Learns where jobs wait, and begins. */
  async start(): Promise<void> {
    const { store, clock } = this.parts;
    this.unsubscribe();
    this.unsubscribe = store.subscribe((changes) => this.hear(changes));
    for (const limits of await store.engine.queueLimits()) this.lanes.setQueueLimits(limits, clock.now());
    for (const { lane, dueAt } of await store.engine.lanes()) this.lanes.note(lane, dueAt);
    this.loop.start();
  }

  /**
   * Begins nothing new and waits up to `graceMs` for what is under way. Attempts that take longer are aborted, and their
   * jobs are pending again.
   */
  async stop(graceMs: number): Promise<void> {
    await this.loop.stop();
    this.unsubscribe();
    const cancel = this.parts.clock.timer(graceMs, () => this.shutdown.abort());
    await Promise.all(this.deliveries);
    cancel();
  }

  get depth() {
    return { ...this.lanes.depth, inFlight: this.lanes.inFlight };
  }

  /** Begins what is due and may begin; answers when something is due next. */
  async step(now: number): Promise<number | null> {
    let grants = this.lanes.take(now);
    while (grants.length > 0) {
      const results = await this.claim(grants, now);
      results.forEach(({ claims, nextDueAt, heldUntil }, i) => {
        const dueAt = nextDueAt === null || heldUntil === null ? nextDueAt : Math.max(nextDueAt, heldUntil);
        this.lanes.claimed(grants[i]!, claims.length, dueAt, now);
        for (const claim of claims) this.begin(claim);
      });
      grants = grants.slice(results.length);
    }
    return this.lanes.wakeAt(now);
  }

  /** A claim that failed gives every place back; the lanes are due again after a pause. */
  private async claim(grants: ReturnType<Lanes["take"]>, now: number) {
    try {
      return await this.parts.store.engine.claimDue(grants, now);
    } catch (error) {
      for (const grant of grants) this.lanes.claimed(grant, 0, now + STORE_PAUSE_MS, now);
      throw error;
    }
  }

  private hear(changes: readonly Change[]): void {
    let nudge = false;
    for (const change of changes) {
      if (change.kind === "lane") this.lanes.note(change.lane, change.dueAt);
      else if (change.kind === "queue") this.lanes.setQueueLimits(change.limits, this.parts.clock.now());
      else continue;
      nudge = true;
    }
    if (nudge) this.loop.nudge();
  }

  private begin(claim: Claim): void {
    const delivery = this.deliver(claim).then((outcome) => {
      this.deliveries.delete(delivery);
      this.lanes.finished(claim.lane, standingAfter(outcome), this.parts.clock.now());
      this.loop.nudge();
    });
    this.deliveries.add(delivery);
  }

  /** One attempt, from claim to ledger. */
  private async deliver(claim: Claim): Promise<Outcome | null> {
    const outcome = await this.attempt(claim);
    const settlement = this.judge(claim, outcome);
    if (outcome !== null) this.parts.onAttempt?.(claim, outcome);
    await this.record(claim, settlement);
    return outcome;
  }

  /** Null when the shutdown did not wait for it. Never rejects: whatever happens, the claim gets its settlement. */
  private async attempt(claim: Claim): Promise<Outcome | null> {
    try {
      if (isErrandsOwn(claim) && !(await this.isSynced(claim))) return null;
      const delivery = await this.deliveryOf(claim);
      if ("unresolved" in delivery) {
        return {
          kind: "failure",
          code: "unresolved_reference",
          message: delivery.unresolved,
          durationMs: 0,
        };
      }
      const { clock, sender, version } = this.parts;
      const request = buildRequest(delivery, Math.floor(clock.now() / 1_000), version);
      return await sender.send(request, durationMs(claim.job.task.timeout), this.shutdown.signal);
    } catch (error) {
      if (this.shutdown.signal.aborted) return null;
      this.parts.log.error({ err: error, job: claim.job.id }, "an attempt failed in a way that has no name");
      return {
        kind: "failure",
        code: "invalid_response",
        message: "The request could not be made.",
        durationMs: 0,
      };
    }
  }

  private async deliveryOf(claim: Claim): Promise<Delivery | UnresolvedReference> {
    const body = bodyOf(claim);
    if ("unresolved" in body) return body;
    const { store, clock } = this.parts;
    const secrets = await store.accounts.signingSecrets(claim.job.tenant, clock.now());
    return {
      jobId: claim.callbackOf ?? claim.job.id,
      messageId: messageIdOf(claim),
      attempt: claim.job.attempts,
      scheduleId: claim.job.scheduleId,
      task: claim.job.task,
      ...body,
      secrets: secrets.map(({ secret }) => secret),
    };
  }

  private judge(claim: Claim, outcome: Outcome | null): Settlement {
    const now = this.parts.clock.now();
    const stepName = claim.pipeline?.step.name ?? null;
    if (outcome === null) return release(claim.job, stepName, now);
    return settle(claim.job, stepName, claim.pipeline?.next ?? null, outcome, now);
  }

  /** False when the shutdown did not wait for it. */
  private async isSynced(claim: Claim): Promise<boolean> {
    const { store } = this.parts;
    const failed = "the disk does not say that it has a job; asking again";
    return (await this.insist(claim, failed, () => store.engine.synced())) !== null;
  }

  /** The outcome is kept in memory until the store takes it: the target was called, and that must not be forgotten. */
  private async record(claim: Claim, settlement: Settlement): Promise<void> {
    const { store, log } = this.parts;
    const settled = await this.insist(claim, "an outcome could not be stored; trying again", () =>
      store.engine.settle(claim, settlement),
    );
    if (settled === false)
      log.warn({ job: claim.job.id, attempt: claim.job.attempts }, "a late outcome changed nothing");
  }

  /** Until the store does it, or null when a shutdown does not wait for that. */
  private async insist<T>(claim: Claim, failed: string, command: () => Promise<T>): Promise<T | null> {
    const { clock, log } = this.parts;
    for (;;) {
      try {
        return await command();
      } catch (error) {
        log.error({ err: error, job: claim.job.id }, failed);
        if (this.shutdown.signal.aborted) return null;
        await new Promise<void>((resolve) => {
          clock.timer(STORE_PAUSE_MS, resolve);
        });
      }
    }
  }
}

/**
 * Whether nobody but Errand knows of the job: a power cut that takes it has it made again, under another id. So it is on
 * the disk before it is sent, and a duplicate has the same `webhook-id`.
 */
function isErrandsOwn({ job, callbackOf }: Claim): boolean {
  return callbackOf !== null || job.scheduledFor !== null;
}

function bodyOf({ job, payload, pipeline }: Claim) {
  if (pipeline !== null) return stepBody(pipeline.step, pipeline.previous, payload, pipeline.results);
  return jsonBody(job.task.method === "GET" ? null : payload);
}

/** `webhook-id`: equal on every retry, and its own for each step. A callback has its own id, since a job can end again. */
function messageIdOf({ job, pipeline }: Claim): string {
  return pipeline === null ? job.id : `${job.id}-${job.step + 1}`;
}
