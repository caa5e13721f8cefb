/** Rows of schedules, and what they stand for. */
import { parseJson, type RawJson, stringify } from "../../base/json.ts";
import type { JobTemplate } from "../../jobs/job.ts";
import type { Schedule } from "../../schedules/schedule.ts";
import type { ScheduleChange } from "../store.ts";
import type { Directory } from "./directory.ts";
import type { Rows } from "./rows.ts";
import type { schedules } from "./schema.ts";
import type { Transaction } from "./writer.ts";

export type ScheduleRow = typeof schedules.$inferSelect;

export class ScheduleRows {
  private readonly directory: Directory;
  private readonly rows: Rows;

  constructor(directory: Directory, rows: Rows) {
    this.directory = directory;
    this.rows = rows;
  }

  read(row: ScheduleRow): Schedule {
    const { seq: _seq, tenant, template, ...rest } = row;
    return { ...rest, tenant: this.directory.tenant(tenant), job: this.readTemplate(template) };
  }

  columns(schedule: Schedule): Omit<ScheduleRow, "seq"> {
    const { tenant, job, ...rest } = schedule;
    return {
      ...rest,
      tenant: this.directory.existingTenantId(tenant),
      template: this.writeTemplate(job),
    };
  }

  /** JSON with the payloads' own bytes, and secret-bearing headers sealed. */
  private writeTemplate(job: JobTemplate): string {
    return stringify({
      ...job,
      payload: job.payload ?? undefined,
      target:
        job.target === null ? null : { ...job.target, headers: this.rows.sealHeaders(job.target.headers) },
      steps: job.steps.map((step) => ({
        ...step,
        payload: step.payload ?? undefined,
        headers: this.rows.sealHeaders(step.headers),
      })),
    });
  }

  /** No payload is a missing key, so that the payload `null` stays what it is. */
  private readTemplate(text: string): JobTemplate {
    const stored = parseJson(
      text,
      (path) => path === "payload" || path === "steps/[]/payload",
    ) as StoredTemplate;
    return {
      ...stored,
      payload: stored.payload ?? null,
      target:
        stored.target === null
          ? null
          : { ...stored.target, headers: this.rows.openHeaders(stored.target.headers) },
      steps: stored.steps.map((step) => ({
        ...step,
        payload: step.payload ?? null,
        headers: this.rows.openHeaders(step.headers),
      })),
    };
  }
}

type Stored<T> = Omit<T, "headers" | "payload"> & { headers: string | null; payload?: RawJson };

type StoredTemplate = Omit<JobTemplate, "payload" | "target" | "steps"> & {
  payload?: RawJson;
  target: Stored<NonNullable<JobTemplate["target"]>> | null;
  steps: Stored<JobTemplate["steps"][number]>[];
};

/** Tells the feed and the scheduler what happened to a schedule. */
export function tell(
  transaction: Transaction,
  schedule: Schedule,
  event: ScheduleChange["event"],
  at: number,
): void {
  const { tenant, id, nextRunAt } = schedule;
  transaction.emit({ kind: "schedule", tenant, scheduleId: id, event, nextRunAt, at });
}
