/** What was used: jobs made and attempts delivered, by month and day. */
import * as v from "valibot";
import { utcDay } from "../base/clock.ts";
import { MODES } from "../base/tenant.ts";
import * as field from "./fields.ts";
import { type Operation, operation } from "./operation.ts";
import { count, described } from "./output-fields.ts";

const figures = {
  jobs: described(count, "Jobs made: a pipeline is one; callbacks and retries are none."),
  deliveries: described(count, "Attempts of jobs; those of callbacks are not counted."),
};

export const usageOperations: readonly Operation[] = [
  operation({
    name: "usage.get",
    summary: "Read how many jobs and deliveries a month had, by day (UTC)",
    scope: "read",
    effect: "read",
    input: field.closed({
      month: v.optional(
        v.pipe(
          v.string(),
          v.regex(/^\d{4}-(0[1-9]|1[0-2])$/, `has to be a month, such as "2026-11"`),
          v.description("The month, such as 2026-11, in UTC; the present one by default."),
        ),
      ),
    }),
    output: v.object({
      month: v.string(),
      mode: described(v.picklist(MODES), "Only live jobs are billed."),
      ...figures,
      days: described(
        v.array(v.object({ day: v.string(), ...figures })),
        "Days on which something happened, in order.",
      ),
    }),
    http: { method: "GET", path: "/v1/usage", status: 200 },
    cli: { command: "usage", examples: ["errand usage --month 2026-11"] },
    mcp: "get_usage",
    async run({ store, principal, clock }, { month = utcDay(clock.now()).slice(0, "2026-11".length) }) {
      const days = await store.queues.usage(principal.tenant, month);
      const sum = (name: "jobs" | "deliveries") => days.reduce((total, day) => total + day[name], 0);
      return {
        month,
        mode: principal.tenant.mode,
        jobs: sum("jobs"),
        deliveries: sum("deliveries"),
        days: days.map(({ day, jobs, deliveries }) => ({ day, jobs, deliveries })),
      };
    },
  }),
];
