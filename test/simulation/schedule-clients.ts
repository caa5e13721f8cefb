/** What random clients do with schedules. */
import type { Tenant } from "../../src/base/tenant.ts";
import type { JobDetail, NewJob } from "../../src/jobs/job.ts";
import { jobOfSchedule } from "../../src/schedules/run.ts";
import type { Schedule } from "../../src/schedules/schedule.ts";
import type { Once } from "../../src/store/store.ts";
import type { Random } from "./random.ts";
import { newSchedule, pausedAs } from "./requests.ts";
import type { KnownSchedule } from "./witness.ts";
import type { World } from "./world.ts";

export class ScheduleClients {
  private readonly world: World;
  private readonly random: Random;

  constructor(world: World, random: Random) {
    this.world = world;
    this.random = random;
  }

  create(tenant: Tenant): void {
    const { world, random } = this;
    const { schedules } = world.witness;
    if (schedules.length >= 4) return;
    const now = world.now();
    const label = `S${schedules.length + 1}`;
    const schedule = newSchedule(random, label, tenant, now);
    const known: KnownSchedule = { label, schedule, acknowledged: false, touched: false };
    schedules.push(known);
    world.trace.add(
      `create schedule ${label}: ${schedule.cronExpr}, ${schedule.onMissed}, ${schedule.onOverlap}`,
    );
    world.ask(
      `create ${label}`,
      (store) => store.schedules.create(schedule, null),
      () => {
        known.acknowledged = true;
        world.trace.add(`${label} is acknowledged`);
      },
    );
  }

  change(): void {
    const { world, random } = this;
    const known = random.pick(world.witness.schedules);
    if (known === undefined || random.chance(0.4)) return;
    known.touched = true;
    const { id, tenant } = known.schedule;
    if (random.chance(0.15)) {
      known.acknowledged = false;
      world.trace.add(`remove schedule ${known.label}`);
      world.ask(
        "remove",
        (store) => store.schedules.remove(tenant, id, world.now()),
        () => {},
      );
      return;
    }
    const paused = random.chance(0.5);
    world.trace.add(`${paused ? "pause" : "resume"} schedule ${known.label}`);
    world.ask(
      "change a schedule",
      (store) => store.schedules.update(tenant, id, (one) => pausedAs(one, paused, world.now())),
      () => {},
    );
  }

  /** A run besides all due times, with an Idempotency-Key or without one. `told`: what its answer acknowledges. */
  trigger(told: (ids: readonly string[]) => void): void {
    const { world, random } = this;
    const { witness } = world;
    const known = random.pick(witness.schedules);
    if (known === undefined) return;
    const { id, tenant } = known.schedule;
    const wasThere = known.acknowledged;
    const key = random.chance(0.3) ? `trigger-${known.label}` : null;
    const offered: string[] = [];
    witness.triggers.push(offered);
    if (key !== null) witness.offer(key, offered);
    // The store may ask more than once; one of the answers counts.
    const run = (schedule: Schedule): NewJob => {
      const job = { ...jobOfSchedule(schedule, null, world.now()), idempotencyKey: key };
      witness.expectJob(tenant, job, world.now());
      offered.push(job.id);
      return job;
    };
    const once: Once<JobDetail> | null =
      key === null
        ? null
        : { key, fingerprint: key, answer: (job) => ({ status: 200, headers: {}, body: job.id }) };
    world.trace.add(`trigger ${known.label}${key === null ? "" : ` once as ${key}`}`);
    world.ask(
      `trigger ${known.label}`,
      (store) => store.schedules.trigger(tenant, id, run, world.now(), once),
      (made) => {
        if (made !== null) told(["replay" in made ? made.replay.body : made.value.id]);
        else if (wasThere && known.acknowledged) witness.violate(`${known.label} is there and was not found`);
      },
    );
  }
}
