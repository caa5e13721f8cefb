/** Random requests, such as clients make them. */
import { newId } from "../../src/base/ids.ts";
import { RawJson } from "../../src/base/json.ts";
import type { Tenant } from "../../src/base/tenant.ts";
import { type JobFields, templateOf } from "../../src/operations/job-input.ts";
import { nextFireTime } from "../../src/schedules/firing.ts";
import type { Schedule } from "../../src/schedules/schedule.ts";
import type { QueueSettings } from "../../src/store/store.ts";
import { INPUT_TEXT, POINTERS } from "./bodies.ts";
import type { Random } from "./random.ts";

const ORIGINS = ["http://a.test", "http://b.test", "http://c.test", "https://d.test:8443"] as const;
export const QUEUES = ["default", "mail", "slow"] as const;
const KEYS = ["k1", "k2", "k3"] as const;

/** The path of each URL says what it is for, so that the target knows: `/J1`, `/J1/<step>`, `/J1/callback`. */
export function jobFields(random: Random, name: string): JobFields {
  const steps = random.chance(0.2) ? random.between(1, 4) : 0;
  return {
    ...(steps === 0 ? { url: random.pick(ORIGINS) + name } : {}),
    ...(steps > 0
      ? { steps: Array.from({ length: steps }, (_, i) => stepFields(random, `${name}/${i}`, i)) }
      : {}),
    ...(random.chance(0.5) ? { payload: new RawJson(INPUT_TEXT) } : {}),
    ...ruleFields(random),
    queue: random.pick(QUEUES),
    ...(random.chance(0.2) ? { delay: random.pick(["1s", "20s", "5m", "2h"]) } : {}),
    ...(random.chance(0.12) ? { requires_approval: true } : {}),
    ...(random.chance(0.3) ? { approval_timeout: random.pick(["10s", "10m"]) } : {}),
    ...(random.chance(0.25) ? { callback_url: `${random.pick(ORIGINS)}${name}/callback` } : {}),
    ...(random.chance(0.15)
      ? { dedupe_key: random.pick(KEYS), dedupe_window: random.pick(["5s", "10m", "24h"]) }
      : {}),
  };
}

function stepFields(random: Random, path: string, position: number) {
  return {
    url: random.pick(ORIGINS) + path,
    ...(random.chance(0.6) ? { payload: new RawJson(stepPayload(random, position)) } : {}),
    ...(random.chance(0.3) ? ruleFields(random) : {}),
    ...(random.chance(0.2) ? { delay: random.pick(["1s", "1m"]) } : {}),
    ...(random.chance(0.2) ? { requires_approval: true } : {}),
  };
}

/** With references to what came before; now and then one that finds nothing. Steps have the names that they get by default. */
function stepPayload(random: Random, position: number): string {
  const reference = () => {
    if (position === 0 || random.chance(0.15)) return `{"$from":"input#${random.pick(["", "/n"])}"}`;
    const pointer = random.chance(0.05) ? POINTERS.at(-1)! : random.pick(POINTERS.slice(0, -1))!;
    return `{"$from":"step_${random.between(1, position)}#${pointer}"}`;
  };
  return random.weighted([
    [2, '{"own":[1.0]}'],
    [3, `{"one":${reference()},"own":1.0}`],
    [2, `[${reference()},[${reference()}], ${reference()}]`],
    [1, reference()],
  ]);
}

function ruleFields(random: Random) {
  return {
    max_attempts: random.between(1, 4),
    timeout: random.pick(["1s", "3s", "10s"]),
    ...(random.chance(0.7) ? { retry_delays: random.pick([["1s"], ["1s", "5s"], ["2s", "1m"]]) } : {}),
    ...(random.chance(0.3) ? { no_retry_on: [404] } : {}),
  };
}

export function queueSettings(random: Random): Partial<QueueSettings> {
  return random.weighted<Partial<QueueSettings>>([
    [3, { concurrency: random.pick([1, 2, 3, null]) }],
    [
      3,
      {
        rateLimit: random.pick([
          { limit: 1, period: "1s" },
          { limit: 3, period: "10s" },
          { limit: 2, period: "1m" },
          null,
        ]),
      },
    ],
    [2, { paused: true }],
    [4, { paused: false }],
  ]);
}

export function newSchedule(random: Random, label: string, tenant: Tenant, now: number): Schedule {
  const times = {
    cronExpr: random.pick(["* * * * *", "*/2 * * * *", "*/15 * * * *", "0 * * * *"]),
    timezone: random.pick(["UTC", "Europe/Berlin"]),
    startsAt: null,
    endsAt: null,
  };
  return {
    ...times,
    id: newId("sch", now),
    tenant,
    name: null,
    job: templateOf({
      url: `${random.pick(ORIGINS)}/${label}`,
      ...ruleFields(random),
      queue: random.pick(QUEUES),
      ...(random.chance(0.1) ? { requires_approval: true, approval_timeout: "1m" } : {}),
    }),
    onMissed: random.pick(["skip", "once", "all"]),
    onOverlap: random.pick(["allow", "skip"]),
    paused: false,
    nextRunAt: nextFireTime(times, now),
    lastRunAt: null,
    lastJobId: null,
    createdAt: now,
    updatedAt: now,
  };
}

/** The schedule as a pause or its end would leave it. */
export function pausedAs(schedule: Schedule, paused: boolean, now: number): Schedule {
  if (schedule.paused === paused) return schedule;
  return { ...schedule, paused, nextRunAt: paused ? null : nextFireTime(schedule, now), updatedAt: now };
}
