/** `errand jobs wait`: ends when the job has ended, and fails when it did. */
import type { Command } from "commander";
import { parseDuration } from "../base/duration.ts";
import { describeUse, formatOf } from "./command-use.ts";
import { followToEnd, requireCompleted } from "./follow.ts";
import { print, UsageFault } from "./output.ts";
import type { Session } from "./session.ts";

export function addWait(jobs: Command, session: Session): void {
  const command = jobs
    .command("wait")
    .summary("Wait until a job has ended, telling what happens on stderr; exit 5 unless it completed")
    .argument("<id>", "The id of a job.")
    .option("--timeout <duration>", "give up after this, such as 5m, and exit 1");
  command.description(command.summary());
  describeUse(command, ["errand jobs wait job_01jd…", "errand jobs wait job_01jd… --timeout 5m -o json"]);
  command.action(async (id: string) => {
    const { timeout } = command.opts<{ timeout?: string }>();
    const timeoutMs = timeout === undefined ? null : parseDuration(timeout);
    if (timeout !== undefined && timeoutMs === null)
      throw new UsageFault(
        `--timeout has to be a whole number and a unit (s, m, h, d), such as 30s, not ${timeout}`,
      );
    const format = formatOf(command, session);
    const ended = await followToEnd(session, session.connect(), id, timeoutMs);
    print("jobs.get", ended, format, session.terminal);
    requireCompleted(ended);
  });
}
