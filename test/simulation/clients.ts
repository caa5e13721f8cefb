/** What random clients do, and what else befalls the service. Each action begins at once and is never waited for. */
import { durationMs } from "../../src/base/duration.ts";
import type { Tenant } from "../../src/base/tenant.ts";
import type { JobStatus } from "../../src/jobs/job.ts";
import { approve, cancel, reject, retry } from "../../src/jobs/lifecycle.ts";
import { type JobFields, newJob } from "../../src/operations/job-input.ts";
import type { Enqueued, Once, OnceResult } from "../../src/store/store.ts";
import { disk } from "./machine.ts";
import type { Random } from "./random.ts";
import { jobFields, QUEUES, queueSettings } from "./requests.ts";
import { ScheduleClients } from "./schedule-clients.ts";
import type { KnownJob } from "./witness.ts";
import type { World } from "./world.ts";

export class Clients {
  private readonly world: World;
  private readonly random: Random;
  private names = 0;
  private jumpedMs = 0;
  private readonly actions;

  constructor(world: World, random: Random) {
    this.world = world;
    this.random = random;
    const schedules = new ScheduleClients(world, random);
    this.actions = [
      [24, () => this.enqueue()],
      [4, () => this.enqueueBatch()],
      [4, () => this.enqueueOnce()],
      [3, () => schedules.create(this.tenant())],
      [2, () => schedules.change()],
      [2, () => schedules.trigger((ids) => this.acknowledge(ids))],
      [6, () => this.cancel()],
      [9, () => this.approve()],
      [3, () => this.reject()],
      [6, () => this.retry()],
      [2, () => this.changeAll()],
      [6, () => this.configure()],
      [7, () => world.target.answerOne()],
      [6, () => world.outcomes.releaseOne()],
      [5, () => this.repeatOutcome()],
      [0.7, () => world.backUp()],
      [2.2, () => world.kill()],
      [1, () => world.cutPower()],
      [0.6, () => world.restart(random.pick([0, 500, 5_000]))],
      [2.5, () => this.breakDisk()],
      [2, () => disk.heal()],
      [4, () => this.jump()],
      [11, () => world.pass(random.between(1, 900))],
      [8, () => world.pass(random.between(1_000, 6_000))],
      [3, () => world.pass(25_000)],
    ] as const;
  }

  act(): void | Promise<void> {
    return this.random.weighted<() => void | Promise<void>>(this.actions)();
  }

  // ── Jobs ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  private enqueue(): void {
    const { world } = this;
    const tenant = this.tenant();
    const job = newJob(this.fields(), world.now(), null);
    world.witness.expectJob(tenant, job, world.now());
    const label = world.witness.label(job.id);
    world.trace.add(
      `enqueue ${label} in ${job.queue}${job.dedupeKey === null ? "" : ` with ${job.dedupeKey}`}`,
    );
    world.ask(
      `enqueue ${label}`,
      (store) => store.jobs.enqueue(tenant, [job], world.now(), null),
      (result) => this.acknowledge(idsOf(result)),
    );
  }

  private enqueueBatch(): void {
    const { world } = this;
    const tenant = this.tenant();
    const jobs = Array.from({ length: this.random.between(2, 5) }, () => {
      const job = { ...newJob(this.fields(), world.now(), null), dedupeKey: null };
      world.witness.expectJob(tenant, job, world.now());
      return job;
    });
    const ids = jobs.map(({ id }) => id);
    world.witness.batches.push(ids);
    world.trace.add(`enqueue a batch ${ids.map((id) => world.witness.label(id)).join(" ")}`);
    world.ask(
      "enqueue a batch",
      (store) => store.jobs.enqueue(tenant, jobs, world.now(), null),
      (result) => this.acknowledge(idsOf(result)),
    );
  }

  /** A careful client: it sends the same key again, as long as it likes, whatever became of it before. */
  private enqueueOnce(): void {
    const { world } = this;
    const key = `once-${this.random.between(1, 4)}`;
    const tenant = world.tenants[0];
    const job = { ...newJob(this.fields(), world.now(), key), dedupeKey: null };
    world.witness.expectJob(tenant, job, world.now());
    world.witness.offer(key, [job.id]);
    const once: Once<readonly Enqueued[]> = {
      key,
      fingerprint: key,
      answer: ([first]) => ({ status: 201, headers: {}, body: first!.job.id }),
    };
    world.trace.add(`enqueue ${world.witness.label(job.id)} once as ${key}`);
    world.ask(
      `enqueue as ${key}`,
      (store) => store.jobs.enqueue(tenant, [job], world.now(), once),
      (result) => this.acknowledge(idsOf(result)),
    );
  }

  private acknowledge(ids: readonly string[]): void {
    for (const id of ids) {
      const job = this.world.witness.jobs.get(id);
      if (job === undefined) {
        this.world.witness.violate(`a job was acknowledged that nobody knows`);
        continue;
      }
      job.acknowledged = true;
      this.world.trace.add(`${job.label} is acknowledged`);
      if (job.status === null && job.removed === "no")
        this.world.witness.violate(`${job.label} was acknowledged before it was written`);
    }
  }

  private cancel(): void {
    const { world } = this;
    this.change("cancel", ["pending", "awaiting_approval", "active"], (id, known) =>
      world.ask(
        `cancel ${known.label}`,
        (store) => store.jobs.change(known.tenant, id, (job) => cancel(job, world.now())),
        () => this.seal(known),
      ),
    );
  }

  private approve(): void {
    const { world } = this;
    this.change("approve", ["awaiting_approval"], (id, known) =>
      world.ask(
        `approve ${known.label}`,
        (store) =>
          store.jobs.change(known.tenant, id, (job, step) => {
            const changes = approve(job, step, "somebody", null, world.now());
            known.approved.add(job.step);
            return changes;
          }),
        () => {},
      ),
    );
  }

  private reject(): void {
    const { world } = this;
    this.change("reject", ["awaiting_approval"], (id, known) =>
      world.ask(
        `reject ${known.label}`,
        (store) => store.jobs.change(known.tenant, id, (job) => reject(job, "somebody", "no", world.now())),
        () => this.seal(known),
      ),
    );
  }

  private retry(): void {
    const { world } = this;
    this.change("retry", ["failed", "cancelled"], (id, known) => {
      known.sealed = false;
      const over = this.retrying();
      world.ask(
        `retry ${known.label}`,
        (store) => store.jobs.change(known.tenant, id, (job, step) => retry(job, step, world.now())),
        over,
        over,
      );
    });
  }

  private changeAll(): void {
    const { world } = this;
    const tenant = this.tenant();
    const queue = this.random.pick(QUEUES);
    if (this.random.chance(0.4)) {
      world.trace.add(`cancel all in ${queue}`);
      const from = ["pending", "awaiting_approval"] as const;
      world.ask(
        "cancel all",
        (store) => store.jobs.changeAll(tenant, { queue }, from, (job) => cancel(job, world.now())),
        () => {},
      );
      return;
    }
    world.trace.add(`retry all in ${queue}`);
    for (const job of world.witness.jobs.values()) job.sealed = false;
    const over = this.retrying();
    world.ask(
      "retry all",
      (store) =>
        store.jobs.changeAll(tenant, { queue }, ["failed", "cancelled"], (job, step) =>
          retry(job, step, world.now()),
        ),
      over,
      over,
    );
  }

  /** Mostly a job in one of the states; sometimes any, which then has to be refused. */
  private change(
    what: string,
    states: readonly JobStatus[],
    begin: (id: string, job: KnownJob) => void,
  ): void {
    const all = [...this.world.witness.jobs].filter(([, job]) => job.status !== null);
    const fitting = all.filter(([, job]) => states.includes(job.status!) && job.removed === "no");
    const chosen = this.random.pick(this.random.chance(0.9) ? fitting : all);
    if (chosen === undefined) return;
    this.world.trace.add(`${what} ${chosen[1].label}`);
    begin(...chosen);
  }

  private seal(job: KnownJob): void {
    if (this.world.witness.retriesUnderWay === 0) job.sealed = true;
  }

  private retrying(): () => void {
    const { witness } = this.world;
    witness.retriesUnderWay += 1;
    return () => {
      witness.retriesUnderWay -= 1;
    };
  }

  private fields(): JobFields {
    return jobFields(this.random, `/J${++this.names}`);
  }

  // ── Queues ────────────────────────────────────────────────────────────────────────────────────────────────────────

  private configure(): void {
    const { world, random } = this;
    const tenant = this.tenant();
    const name = random.pick(QUEUES);
    const settings = queueSettings(random);
    world.witness.queue(tenant, name).changing(settings, world.now());
    world.trace.add(`configure ${tenant.mode} ${name}: ${JSON.stringify(settings)}`);
    world.ask(
      "configure",
      (store) => store.queues.configure(tenant, name, settings, world.now()),
      () => {},
    );
  }

  // ── What befalls the service ──────────────────────────────────────────────────────────────────────────────────────

  private repeatOutcome(): void {
    const { world } = this;
    const repeated = world.outcomes.repeatOne(world.store);
    if (repeated === null) return;
    const { job } = repeated.claim;
    const what = `the outcome of ${world.witness.label(job.id)} attempt ${job.attempts}`;
    world.trace.add(`${what} comes again`);
    world.ask(
      what,
      () => repeated.settled,
      (settled) => {
        if (settled) world.witness.violate(`${what} came twice and counted twice`);
      },
    );
  }

  private breakDisk(): void {
    const { world, random } = this;
    if (random.chance(0.4)) {
      world.trace.add("syncs fail");
      return disk.failSyncs(random.between(1, 2));
    }
    const code = random.pick(["SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_BUSY"] as const);
    world.trace.add(`writes fail: ${code}`);
    disk.failWrites(random.between(0, 12), random.between(1, 6), code);
  }

  private jump(): void {
    const { world, random } = this;
    if (random.chance(0.25)) return world.jump(-random.pick([1, 800, 5_000, 90_000, 20 * 60_000]));
    const byMs = random.pick([500, 7_000, 61_000, 5 * 60_000, 25 * 60_000]);
    // Answers under an Idempotency-Key are kept for a day; a run stays well below it.
    if (this.jumpedMs + byMs > durationMs("10h")) return;
    this.jumpedMs += byMs;
    world.jump(byMs);
  }

  private tenant(): Tenant {
    return this.random.chance(0.8) ? this.world.tenants[0] : this.world.tenants[1];
  }
}

function idsOf(result: OnceResult<readonly Enqueued[]>): readonly string[] {
  return "replay" in result ? [result.replay.body] : result.value.map(({ job }) => job.id);
}
