/** A store, a virtual clock and a scheduler that is stepped by hand: what tests of firing stand on. */
import { rmSync } from "node:fs";
import type { TestContext } from "node:test";
import { newId } from "../../src/base/ids.ts";
import { createLogger } from "../../src/base/log.ts";
import { secretBox } from "../../src/base/secret-box.ts";
import type { Tenant } from "../../src/base/tenant.ts";
import { Janitor } from "../../src/engine/janitor.ts";
import { Scheduler } from "../../src/engine/scheduler.ts";
import { createAccount } from "../../src/first-boot.ts";
import { firstRun } from "../../src/schedules/revise.ts";
import type { Occurrence, Schedule, ScheduleSpec } from "../../src/schedules/schedule.ts";
import { openStore } from "../../src/store/sqlite/open.ts";
import type { Store } from "../../src/store/store.ts";
import { temporaryFolder } from "./app.ts";
import type { VirtualClock } from "./clock.ts";

export interface Bed {
  readonly clock: VirtualClock;
  readonly folder: string;
  readonly tenant: Tenant;
  store: Store;
  /** A new process would start with these. */
  scheduler: Scheduler;
  janitor: Janitor;
  /** A minutely schedule of a POST, but for what `spec` says. */
  schedule(spec?: Partial<ScheduleSpec>): Promise<Schedule>;
  read(id: string): Promise<Schedule>;
  /** The whole ledger, oldest due time first. */
  ledger(id: string): Promise<Occurrence[]>;
  /** The due time of each job of the schedule, oldest job first. */
  jobTimes(id: string): Promise<(number | null)[]>;
  /** What a kill and a start leave: the same file, nothing in memory. */
  restart(meanwhile?: () => void | Promise<void>): Promise<void>;
}

export const TEMPLATE: ScheduleSpec["job"] = {
  queue: "default",
  tags: [],
  target: { url: "http://127.0.0.1:9/", method: "POST", headers: {} },
  rules: { maxAttempts: 3, timeout: "30s", retryDelays: null, noRetryOn: [] },
  payload: null,
  steps: [],
  requiresApproval: false,
  approvalTimeout: null,
  callbackUrl: null,
};

export async function schedulingBed(t: Pick<TestContext, "after">, clock: VirtualClock): Promise<Bed> {
  const folder = temporaryFolder();
  const log = createLogger("silent", "json");
  const box = secretBox("0".repeat(64));
  const parts = () => {
    const store = openStore({ folder, box, clock });
    return {
      store,
      scheduler: new Scheduler({ store, clock, log }),
      janitor: new Janitor({ store, clock, log, retentionMs: 30 * 86_400_000 }),
    };
  };
  const first = parts();
  await createAccount(first.store, "Test account", { test: `errand_test_${"0".repeat(30)}` }, clock.now());
  const [account] = await first.store.accounts.list();
  const tenant: Tenant = { accountId: account!.id, mode: "test" };

  const bed: Bed = {
    clock,
    folder,
    tenant,
    ...first,
    async schedule(given = {}) {
      const now = clock.now();
      const spec: ScheduleSpec = {
        name: null,
        cronExpr: "* * * * *",
        timezone: "UTC",
        job: TEMPLATE,
        onMissed: "once",
        onOverlap: "allow",
        startsAt: null,
        endsAt: null,
        paused: false,
        ...given,
      };
      const schedule: Schedule = {
        ...spec,
        id: newId("sch", now),
        tenant,
        nextRunAt: firstRun(spec, now),
        lastRunAt: null,
        lastJobId: null,
        createdAt: now,
        updatedAt: now,
      };
      await bed.store.schedules.create(schedule, null);
      return schedule;
    },
    async read(id) {
      const found = await bed.store.schedules.get(tenant, id);
      if (found === null) throw new Error(`no schedule ${id}`);
      return found;
    },
    async ledger(id) {
      const lines: Occurrence[] = [];
      for (let cursor: string | null = null; ; ) {
        const page = await bed.store.schedules.occurrences(tenant, id, { limit: 10_000, cursor });
        lines.push(...(page?.items ?? []));
        cursor = page?.nextCursor ?? null;
        if (cursor === null) return lines.toReversed();
      }
    },
    async jobTimes(id) {
      const page = await bed.store.jobs.list(tenant, { scheduleId: id }, { limit: 10_000, cursor: null });
      return page.items.map(({ scheduledFor }) => scheduledFor).toReversed();
    },
    async restart(meanwhile) {
      await bed.store.close();
      await meanwhile?.();
      Object.assign(bed, parts());
    },
  };
  t.after(async () => {
    await bed.store.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return bed;
}

export const at = (text: string): number => Date.parse(`${text.replace(" ", "T")}Z`);
