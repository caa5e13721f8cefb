/** Waits for the end of a job, and tells what happens to it meanwhile. */
import type * as v from "valibot";
import { formatTime, parseTime } from "../base/clock.ts";
import { describeDuration } from "../base/duration.ts";
import { type Client, isPassing } from "../client/client.ts";
import { FINAL } from "../jobs/lifecycle.ts";
import type { job } from "../operations/job-output.ts";
import { cellOf, relative } from "./cells.ts";
import { AwaitedJobFault } from "./faults.ts";
import { operationNamed, type Session } from "./session.ts";
import { printable } from "./terminal.ts";

export type JobDocument = v.InferOutput<typeof job>;

/** How often a change that is not the end is looked for; the end itself is answered at once. */
const LOOK_S = 2;
/** A service that restarts is back within this; then the wait goes on. */
const OUTAGE_MS = 60_000;
const RETRY_MS = 1_000;
/** Even `--timeout 0s` looks once. */
const FIRST_ANSWER_MS = 5_000;

/**
 * The job as it ended. `timeoutMs` null: waits for as long as it takes. `isReached` says that the service has answered
 * before: the first read is to fail at once, since a wrong address is no outage.
 */
export async function followToEnd(
  session: Session,
  client: Client,
  id: string,
  timeoutMs: number | null,
  isReached = false,
): Promise<JobDocument> {
  const { clock } = session.terminal;
  const deadline = timeoutMs === null ? Number.POSITIVE_INFINITY : clock.monotonic() + timeoutMs;
  let told = "";
  let status = "not known to have ended";
  let wait: string | undefined;
  for (;;) {
    const input = { id, ...(wait === undefined ? {} : { wait }) };
    const limit = wait === undefined ? Math.max(deadline, clock.monotonic() + FIRST_ANSWER_MS) : deadline;
    const current = await readThroughOutage(session, client, input, limit, isReached || wait !== undefined);
    // What ended in time would have been answered in time.
    if (current === null)
      throw new Error(`${id} is still ${status} after ${describeDuration(timeoutMs ?? 0)}`);
    const state = `${current.status} ${stepOf(current)} ${current.attempts} ${current.next_retry_at}`;
    if (state !== told) tell(session, current);
    told = state;
    if (FINAL.has(current.status)) return current;
    status = current.status;
    wait = `${LOOK_S}s`;
  }
}

/** Throws where the job that was waited for has failed or was cancelled. */
export function requireCompleted({
  id,
  status,
  last_error: lastError,
  last_error_code: code,
}: JobDocument): void {
  if (status === "completed") return;
  throw new AwaitedJobFault(
    status === "failed"
      ? `${id} failed: ${lastError ?? "no error was recorded"} (${code ?? "unknown"})`
      : `${id} was ${status}`,
  );
}

/** Null when no answer came before the deadline, which a service that hangs or is away does not put off. */
async function readThroughOutage(
  session: Session,
  client: Client,
  input: { id: string; wait?: string },
  deadline: number,
  isReached: boolean,
): Promise<JobDocument | null> {
  const { clock } = session.terminal;
  let since: number | null = null;
  for (;;) {
    const outOfTime = new AbortController();
    const cancel = clock.timer(deadline - clock.monotonic(), () => outOfTime.abort());
    const { signal } = outOfTime;
    try {
      return (await client.call(operationNamed("jobs.get"), input, { signal })).body as JobDocument;
    } catch (error) {
      if (signal.aborted) return null;
      if (!isPassing(error) || !isReached) throw error;
      if (since === null) session.terminal.say(`errand: ${error.message}; trying again`);
      since ??= clock.monotonic();
      if (Math.min(deadline, since + OUTAGE_MS) - clock.monotonic() < RETRY_MS) throw error;
      await session.pause(RETRY_MS);
    } finally {
      cancel();
    }
  }
}

function tell({ terminal }: Session, current: JobDocument): void {
  const { style } = cellOf("status", current.status, 0);
  const at = formatTime(terminal.clock.now()).slice(11, 19);
  const state = terminal.paintAside(current.status.replace("_", " "), style);
  terminal.say(`${at}Z  ${state}  ${printable(storyOf(current, terminal.clock.now()))}`.trimEnd());
}

/** The name of the current step, the first one that stands where the job does; null where there are none. */
function stepOf({ status, steps }: JobDocument): string | null {
  return steps?.find((one) => one.status === status)?.name ?? null;
}

function storyOf(current: JobDocument, now: number): string {
  const { status, attempts, last_error: error, duration_ms: durationMs } = current;
  const step = stepOf(current);
  const where = step === null ? "" : ` of ${step}`;
  switch (status) {
    case "pending":
      if (attempts > 0 && error !== null)
        return `attempt ${attempts}${where} failed: ${error} Next one ${when(current.next_retry_at, now)}, ${current.retries_remaining} left`;
      return `attempt ${attempts + 1}${where} ${when(current.run_at, now)}`;
    case "active":
      return `attempt ${attempts}${where}`;
    case "awaiting_approval":
      return `errand jobs approve ${current.id}`;
    case "completed":
      return `${current.response_code} in ${describeDuration(durationMs ?? 0)}, attempt ${attempts}`;
    case "failed":
      return `after ${attempts} ${attempts === 1 ? "attempt" : "attempts"}: ${error}`;
    case "cancelled":
      return current.approval_note ?? "";
  }
}

function when(time: string | null, now: number): string {
  const at = time === null ? null : parseTime(time);
  return at === null || at <= now ? "now" : relative(at, now);
}
