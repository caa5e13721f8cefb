/** How a schedule is changed: a due time that has come falls under the schedule as it was, and is decided first. */
import { Problem } from "../base/errors.ts";
import { isDue, isSound } from "../schedules/revise.ts";
import { firingsOf, setAside } from "../schedules/run.ts";
import type { Schedule } from "../schedules/schedule.ts";
import { viewSchedule } from "../schedules/view.ts";
import * as field from "./fields.ts";
import type { Context } from "./operation.ts";

export const scheduleId = field.id("a schedule");

export function noSuchSchedule(id: string): Problem {
  return new Problem("not_found", `There is no schedule ${id} in this account and mode.`);
}

type Rule = (schedule: Schedule) => Schedule;

/**
 * Runs a command of the store that applies a rule to a schedule, `now`. Where the schedule turns out to be due, a change
 * waits: the due times are decided, and the command runs again. Else a change made in the second of a due time would lose
 * it without a trace. While the service is held they are missed and make no job, so a rule that changes nothing, or
 * refuses, leaves them alone. The command's own sync covers the firings.
 */
export async function decideDue<T>(
  { store }: Context,
  now: number,
  command: (decided: (rule: Rule) => Rule) => Promise<T>,
): Promise<T> {
  for (;;) {
    const due: Schedule[] = [];
    const result = await command((rule) => (schedule) => {
      const changed = rule(schedule);
      if (changed === schedule || !isDue(schedule, now)) return changed;
      due.push(schedule);
      return schedule;
    });
    if (due.length === 0) return result;
    const isHeld = await store.maintenance.isHeld();
    for (const schedule of due) {
      const policy = isHeld ? "none" : schedule.onMissed;
      const firings = isSound(schedule) ? firingsOf(schedule, now, policy) : [setAside(schedule, now)];
      for (const firing of firings) await store.schedules.fire([{ schedule, firing }], now);
    }
  }
}

/** Changes one schedule of the caller and answers it. */
export async function changeSchedule(
  context: Context,
  id: string,
  rule: (schedule: Schedule, now: number) => Schedule,
) {
  const { store, principal, clock } = context;
  const now = clock.now();
  const changed = await decideDue(context, now, (decided) =>
    store.schedules.update(
      principal.tenant,
      id,
      decided((schedule) => rule(schedule, now)),
    ),
  );
  if (changed === null) throw noSuchSchedule(id);
  return viewSchedule(changed);
}
