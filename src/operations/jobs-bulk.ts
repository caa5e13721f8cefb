/** What Errand can do with many jobs at once: one rule for all that the filters match. */
import * as v from "valibot";
import { cancel, retry } from "../jobs/lifecycle.ts";
import type { Rule } from "../store/store.ts";
import * as field from "./fields.ts";
import { filterFields, filterOf, statusFilter } from "./job-filter.ts";
import { type Context, type Operation, operation } from "./operation.ts";

export const bulkOperations: readonly Operation[] = [
  bulk({
    name: "jobs.retry_many",
    path: "/v1/jobs/retry",
    cli: {
      command: "jobs retry-all",
      examples: ["errand jobs retry-all --queue mail --created-after 2026-11-20T00:00:00Z"],
    },
    summary: "Retry every failed or cancelled job that the filters match",
    effect: "write",
    from: ["failed", "cancelled"],
    rule: (context) => (one, step) => retry(one, step, context.clock.now()),
  }),

  bulk({
    name: "jobs.cancel_many",
    path: "/v1/jobs/cancel",
    cli: {
      command: "jobs cancel-all",
      examples: ["errand jobs cancel-all --tag import --status pending"],
    },
    summary: "Cancel every pending or waiting job that the filters match",
    effect: "destructive",
    from: ["pending", "awaiting_approval"],
    rule: (context) => (one) => cancel(one, context.clock.now()),
  }),
];

/** One rule for many jobs: the list's filters in the body, the number of jobs changed in the answer. */
function bulk(definition: {
  name: string;
  path: string;
  cli: Operation["cli"];
  summary: string;
  effect: "write" | "destructive";
  from: readonly ("failed" | "cancelled" | "pending" | "awaiting_approval")[];
  rule: (context: Context) => Rule;
}): Operation {
  const { name, path, cli, summary, effect, from, rule } = definition;
  return operation({
    name,
    summary,
    scope: "write",
    effect,
    input: field.closed({
      status: statusFilter(from),
      ...filterFields,
    }),
    output: v.object({
      count: v.pipe(v.number(), v.integer(), v.description("How many jobs were changed.")),
    }),
    http: { method: "POST", path, status: 200 },
    cli,
    mcp: null,
    async run(context, { status, ...filter }) {
      const count = await context.store.jobs.changeAll(
        context.principal.tenant,
        filterOf(filter),
        status ?? from,
        rule(context),
      );
      return { count };
    },
  });
}
