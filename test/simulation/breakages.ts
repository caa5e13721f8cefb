/** Rules of the engine and the store broken on purpose, each behind the store's port: what the simulation has to catch. */
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { RawJson } from "../../src/base/json.ts";
import type { Results } from "../../src/jobs/pipeline.ts";
import { DATABASE_FILE } from "../../src/store/sqlite/open.ts";
import type {
  Claim,
  EngineStore,
  MaintenanceStore,
  PipelineState,
  ScheduleStore,
  Store,
} from "../../src/store/store.ts";
import type { Backup, Breakage } from "./world.ts";

const inEngine =
  (change: (engine: EngineStore, store: Store) => Partial<EngineStore>): Breakage =>
  (store) => ({ ...store, engine: { ...store.engine, ...change(store.engine, store) } });

const inSchedules =
  (change: (schedules: ScheduleStore, store: Store) => Partial<ScheduleStore>): Breakage =>
  (store) => ({ ...store, schedules: { ...store.schedules, ...change(store.schedules, store) } });

const inMaintenance =
  (change: (maintenance: MaintenanceStore) => Partial<MaintenanceStore>): Breakage =>
  (store) => ({ ...store, maintenance: { ...store.maintenance, ...change(store.maintenance) } });

/** Changes what steps of pipelines are made of. */
const inPipelines = (
  change: (pipeline: PipelineState, claim: Claim, store: Store) => PipelineState | Promise<PipelineState>,
): Breakage =>
  inEngine((engine, store) => ({
    async claimDue(wanted, now) {
      const lanes = await engine.claimDue(wanted, now);
      const changed = async (claim: Claim): Promise<Claim> =>
        claim.pipeline === null ? claim : { ...claim, pipeline: await change(claim.pipeline, claim, store) };
      return Promise.all(
        lanes.map(async (lane) => ({ ...lane, claims: await Promise.all(lane.claims.map(changed)) })),
      );
    },
  }));

export interface BrokenRule {
  readonly breakage?: Breakage;
  readonly backup?: Backup;
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

  "the sync: a due time's job is sent before it is on the disk": {
    says: /was sent, and a power cut took/,
    breakage: inEngine(() => ({
      synced: () => Promise.resolve(),
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

  "the limits: the engine does not hear that they changed": {
    says: /at once of its queue/,
    breakage: (store) => ({
      ...store,
      subscribe: (listener) =>
        store.subscribe((changes) => listener(changes.filter(({ kind }) => kind !== "queue"))),
    }),
  },

  "the retention: a job goes before its time": {
    says: /retention removed J\d+|lines for \d+ due times/,
    breakage: inMaintenance((maintenance) => ({
      prune: (before, now) => maintenance.prune(before + 60_000, now),
    })),
  },

  "the retention: nothing goes": {
    says: /retention left J\d+/,
    breakage: inMaintenance(() => ({ prune: () => Promise.resolve(false) })),
  },

  "the trigger: it makes two jobs": {
    says: /(a trigger|the Idempotency-Key trigger-S\d+) made 2 jobs/,
    breakage: inSchedules((schedules) => ({
      async trigger(tenant, id, run, now, once) {
        const made = await schedules.trigger(tenant, id, run, now, once);
        if (made !== null && !("replay" in made)) await schedules.trigger(tenant, id, run, now, null);
        return made;
      },
    })),
  },

  "the trigger: its run stands for a due time": {
    says: /stands for a due time|a job of a schedule is in no ledger/,
    breakage: inSchedules((schedules) => ({
      trigger: (tenant, id, run, now, once) =>
        schedules.trigger(tenant, id, (found) => ({ ...run(found), scheduledFor: now }), now, once),
    })),
  },

  "the references: a step gets the first answer of an earlier one in place of the last": {
    says: /as the body of/,
    breakage: inPipelines(async (pipeline, { job }, store) => {
      const page = await store.jobs.attempts(job.tenant, job.id, { limit: 1_000, cursor: null });
      const attempts = page?.items ?? [];
      const results: Results = new Map(
        [...pipeline.results].map(([name, last]) => [
          name,
          attempts.find(({ stepName, response }) => stepName === name && response !== null)?.response ?? last,
        ]),
      );
      return { ...pipeline, results };
    }),
  },

  "the references: one that finds nothing is sent as null": {
    says: /of which a reference finds nothing/,
    breakage: inPipelines(({ step, ...pipeline }) => {
      const text = step.payload?.text.replace(/\{"\$from":"[^"]*\/list\/2"\}/g, "null");
      return { ...pipeline, step: text === undefined ? step : { ...step, payload: new RawJson(text) } };
    }),
  },

  "the backup: the file is copied without its log": {
    says: /in the backup/,
    backup: (folder, target) => copyFileSync(join(folder, DATABASE_FILE), target),
  },

  "the wake-up: nobody hears of new work": {
    says: /jobs are stuck/,
    breakage: (store) => ({ ...store, subscribe: () => () => {} }),
  },
};
