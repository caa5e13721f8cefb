/** Which fields of an answer make the columns of its table, the most telling first: a narrow terminal drops the last. */
import { isObject } from "./cells.ts";

/** By the operation, or by the field that holds the list. What is not here shows every plain field that it has. */
const COLUMNS: Readonly<Record<string, readonly string[]>> = {
  "jobs.list": ["id", "status", "response_code", "url", "created_at", "attempts", "queue", "last_error"],
  "jobs.attempts": ["number", "step", "started_at", "duration_ms", "response_code", "error_code", "decision"],
  "schedules.list": [
    "id",
    "name",
    "cron_expr",
    "next_run_at",
    "timezone",
    "last_run_at",
    "paused",
    "url",
    "description",
  ],
  "queues.list": [
    "name",
    "paused",
    "counts.pending",
    "counts.active",
    "counts.awaiting_approval",
    "counts.completed",
    "counts.failed",
    "counts.cancelled",
    "oldest_due_age_ms",
    "concurrency",
    "rate_limit",
  ],
  steps: ["name", "status", "attempts", "response_code", "duration_ms", "url", "last_error"],
};

export function columnsOf(what: string, items: readonly unknown[]): readonly string[] {
  const chosen = COLUMNS[what];
  if (chosen !== undefined) return chosen;
  const names = new Set<string>();
  for (const item of items) {
    if (!isObject(item)) continue;
    for (const [name, value] of Object.entries(item)) if (!isObject(value)) names.add(name);
  }
  return [...names];
}
