/** Rules of the engine and the store broken on purpose, each behind the store's port: what the simulation has to catch. */
import type { Claim, EngineStore, ScheduleStore, Store } from "../../src/store/store.ts";
import type { Breakage } from "./world.ts";

const inEngine =
  (change: (engine: EngineStore, store: Store) => Partial<EngineStore>): Breakage =>
  (store) => ({ ...store, engine: { ...store.engine, ...change(store.engine, store) } });

const inSchedules =
  (change: (schedules: ScheduleStore, store: Store) => Partial<ScheduleStore>): Breakage =>
  (store) => ({ ...store, schedules: { ...store.schedules, ...change(store.schedules, store) } });

export interface BrokenRule {
  readonly breakage: Breakage;
  /** How the simulation puts it. */
  readonly says: RegExp;
}

export const BREAKAGES: Readonly<Record<string, BrokenRule>> = {
  "the fence: an outcome counts for whichever attempt is under way": {
    says: /came twice and counted twice|an outcome was lost/,
    breakage: inEngine((engine, store) => ({
      async settle(claim, settlement) {
        const now = await store.jobs.get(claim.job.tenant, claim.job.id);
        if (now === null) return engine.settle(claim, settlement);
        const job: Claim["job"] = { ...claim.job, step: now.step, attempts: now.attempts };
        const attempt = { ...settlement.attempt, step: now.step, number: now.attempts };
        return engine.settle({ ...claim, job }, { ...settlement, attempt });
      },
    })),
  },

  "the ledger: attempts are numbered from two": {
    says: /attempt numbers have a gap|UNIQUE constraint failed: attempts/,
    breakage: inEngine((engine) => ({
      settle: (claim, { attempt, ...settlement }) =>
        engine.settle(claim, { ...settlement, attempt: { ...attempt, number: attempt.number + 1 } }),
    })),
  },

  "the re-arm: a schedule that fired has no next run": {
    says: /lines for \d+ due times|no next run/,
    breakage: inSchedules((schedules) => ({
      fire: (firings, ...rest) =>
        schedules.fire(
          firings.map(({ schedule, firing }) => ({ schedule, firing: { ...firing, nextRunAt: null } })),
          ...rest,
        ),
    })),
  },

  "the re-arm: the next due time is passed over": {
    says: /lines for \d+ due times/,
    breakage: inSchedules((schedules) => ({
      fire: (firings, ...rest) =>
        schedules.fire(
          firings.map(({ schedule, firing }) => ({
            schedule,
            firing: { ...firing, nextRunAt: firing.nextRunAt === null ? null : firing.nextRunAt + 60_000 },
          })),
          ...rest,
        ),
    })),
  },

  "the re-arm: a due time fires twice": {
    says: /a due time made two jobs/,
    breakage: inSchedules((schedules, store) => ({
      async fire(firings, ...rest) {
        const fired = await schedules.fire(firings, ...rest);
        for (const { schedule, firing } of firings) {
          const jobs = firing.occurrences.flatMap(({ job }) =>
            job === null ? [] : [{ ...job, id: `${job.id}2` }],
          );
          if (jobs.length > 0) await store.jobs.enqueue(schedule.tenant, jobs, schedule.nextRunAt ?? 0, null);
        }
        return fired;
      },
    })),
  },

  "the orphan rule: what a dead process left active stays active": {
    says: /jobs are stuck: \d+ active/,
    breakage: inEngine(() => ({
      recover: () => Promise.resolve(0),
    })),
  },

  "the limits: twice as many are claimed as were granted": {
    says: /at once/,
    breakage: inEngine((engine) => ({
      claimDue: (wanted, now) =>
        engine.claimDue(
          wanted.map(({ lane, limit }) => ({ lane, limit: 2 * limit })),
          now,
        ),
    })),
  },

  "the promise: a job is acknowledged that could not be written": {
    says: /acknowledged before it was written|acknowledged and is gone/,
    breakage: (store) => ({
      ...store,
      jobs: {
        ...store.jobs,
        enqueue: (tenant, jobs, now, once) =>
          store.jobs.enqueue(tenant, jobs, now, once).catch(() => ({
            value: jobs.map((job) => ({ job: { ...job, tenant } as never, deduplicated: false })),
          })),
      },
    }),
  },

  "the wake-up: nobody hears of new work": {
    says: /jobs are stuck/,
    breakage: (store) => ({ ...store, subscribe: () => () => {} }),
  },
};
