/** What Errand can do with queues: read them, limit them, hold them. */
import * as v from "valibot";
import { Problem } from "../base/errors.ts";
import { STATUSES } from "../jobs/job.ts";
import type { Queue, QueueSettings } from "../store/store.ts";
import * as field from "./fields.ts";
import { type Context, type Operation, operation } from "./operation.ts";
import { count, countOrNull, described, pageOf } from "./output-fields.ts";

const queueName = v.pipe(v.string(), v.description("The name of a queue."));

const MAX_CONCURRENCY = 65_536;
const MAX_RATE = 100_000;

const queue = v.object({
  name: v.string(),
  concurrency: described(countOrNull, "Attempts at once; null: no limit of its own."),
  rate_limit: described(
    v.nullable(v.object({ limit: count, period: v.string() })),
    "Attempts begun within any one period; null: no limit of its own.",
  ),
  paused: described(v.boolean(), "A paused queue takes jobs and holds them."),
  counts: described(
    v.object(Object.fromEntries(STATUSES.map((status) => [status, count]))),
    "Its jobs by state.",
  ),
  oldest_due_age_ms: described(
    countOrNull,
    "For how long the oldest due job has waited; null when none is due.",
  ),
});

function viewQueue(one: Queue, now: number) {
  return {
    name: one.name,
    concurrency: one.concurrency,
    rate_limit: one.rateLimit,
    paused: one.paused,
    counts: one.counts,
    oldest_due_age_ms: one.oldestDueAt === null ? null : Math.max(0, now - one.oldestDueAt),
  };
}

function noSuchQueue(name: string): Problem {
  return new Problem("not_found", `There is no queue ${name} in this account and mode; PUT makes one.`);
}

async function change(context: Context, name: string, settings: Partial<QueueSettings>) {
  const { store, principal, clock } = context;
  const changed = await store.queues.change(principal.tenant, name, settings, clock.now());
  if (changed === null) throw noSuchQueue(name);
  return viewQueue(changed, clock.now());
}

export const queueOperations: readonly Operation[] = [
  operation({
    name: "queues.list",
    summary: "List queues, newest first: their limits, counts by state, and the age of the oldest due job",
    scope: "read",
    effect: "read",
    input: field.closed(field.page),
    output: pageOf(queue),
    http: { method: "GET", path: "/v1/queues", status: 200 },
    cli: { command: "queues list", examples: ["errand queues list"] },
    mcp: "list_queues",
    async run({ store, principal, clock }, wanted) {
      const now = clock.now();
      const page = await store.queues.list(principal.tenant, field.pageRequest(wanted), now);
      return { data: page.items.map((one) => viewQueue(one, now)), next_cursor: page.nextCursor };
    },
  }),

  operation({
    name: "queues.get",
    summary: "Read a queue: its limits, counts by state, and the age of the oldest due job",
    scope: "read",
    effect: "read",
    input: field.closed({ name: queueName }),
    output: queue,
    http: { method: "GET", path: "/v1/queues/{name}", status: 200 },
    cli: { command: "queues get", positional: ["name"], examples: ["errand queues get mail"] },
    mcp: null,
    problems: ["not_found"],
    async run({ store, principal, clock }, { name }) {
      const now = clock.now();
      const found = await store.queues.get(principal.tenant, name, now);
      if (found === null) throw noSuchQueue(name);
      return viewQueue(found, now);
    },
  }),

  operation({
    name: "queues.set",
    summary: "Set the limits of a queue; makes the queue when it is new",
    description:
      "A limit that is left out stays as it is; null takes it away. New limits hold from the next attempt on.",
    scope: "write",
    effect: "write",
    input: field.closed({
      name: field.queueName,
      concurrency: v.optional(
        v.nullable(
          field.integer(1, MAX_CONCURRENCY, "Attempts at once, from 1 on; null for no limit of its own."),
        ),
      ),
      rate_limit: v.optional(
        v.pipe(
          v.nullable(
            field.closed({
              limit: field.integer(1, MAX_RATE, "Attempts that may begin within any one period."),
              period: field.ratePeriod,
            }),
          ),
          v.description(
            `How many attempts may begin within any one period, such as {"limit":100,"period":"1m"}; null for no limit of its own.`,
          ),
        ),
      ),
    }),
    output: queue,
    http: { method: "PUT", path: "/v1/queues/{name}", status: 200 },
    cli: {
      command: "queues set",
      positional: ["name"],
      examples: [
        "errand queues set mail --concurrency 5",
        `errand queues set mail --rate-limit '{"limit":100,"period":"1m"}'`,
      ],
    },
    mcp: null,
    example: { name: "mail", concurrency: 5, rate_limit: { limit: 100, period: "1m" } },
    async run({ store, principal, clock }, { name, concurrency, rate_limit: rateLimit }) {
      const now = clock.now();
      const settings = {
        ...(concurrency === undefined ? {} : { concurrency }),
        ...(rateLimit === undefined ? {} : { rateLimit }),
      };
      return viewQueue(await store.queues.configure(principal.tenant, name, settings, now), now);
    },
  }),

  operation({
    name: "queues.pause",
    summary: "Pause a queue: it takes jobs and holds them; attempts under way go on",
    scope: "write",
    effect: "write",
    input: field.closed({ name: queueName }),
    output: queue,
    http: { method: "POST", path: "/v1/queues/{name}/pause", status: 200 },
    cli: { command: "queues pause", positional: ["name"], examples: ["errand queues pause mail"] },
    mcp: "pause_queue",
    problems: ["not_found"],
    run: (context, { name }) => change(context, name, { paused: true }),
  }),

  operation({
    name: "queues.resume",
    summary: "Resume a paused queue: what it held is delivered",
    scope: "write",
    effect: "write",
    input: field.closed({ name: queueName }),
    output: queue,
    http: { method: "POST", path: "/v1/queues/{name}/resume", status: 200 },
    cli: { command: "queues resume", positional: ["name"], examples: ["errand queues resume mail"] },
    mcp: "resume_queue",
    problems: ["not_found"],
    run: (context, { name }) => change(context, name, { paused: false }),
  }),
];
