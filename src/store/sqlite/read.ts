/** Reading jobs: one with its bodies, pages of them, and their attempts. */
import { setImmediate as turn } from "node:timers/promises";
import type { Statement } from "better-sqlite3";
import { Problem } from "../../base/errors.ts";
import { RawJson } from "../../base/json.ts";
import type { Tenant } from "../../base/tenant.ts";
import {
  type Attempt,
  type Callback,
  type Job,
  type JobDetail,
  type JobStatus,
  STATUSES,
  type StepDetail,
} from "../../jobs/job.ts";
import type { JobFilter, Page, PageRequest } from "../store.ts";
import type { Connection } from "./connection.ts";
import type { Directory } from "./directory.ts";
import { type AttemptRow, attemptOf, type JobRow, type Rows, responseOf, type StepRow } from "./rows.ts";

/** Rows that one turn of the loop may look at while it searches for matches. */
const WINDOW_ROWS = 10_000;
/** A page, or a transaction over many jobs, that holds more bytes of bodies than this ends there, whatever its limit. */
export const PAGE_BYTES = 8 * 1024 * 1024;

export class JobReader {
  private readonly db: Connection;
  private readonly directory: Directory;
  private readonly rows: Rows;
  private readonly sql;

  constructor(db: Connection, directory: Directory, rows: Rows) {
    this.db = db;
    this.directory = directory;
    this.rows = rows;
    this.sql = {
      job: db.prepare<[string, number], JobRow>(
        "SELECT * FROM jobs WHERE id = ? AND tenant = ? AND callback_of IS NULL",
      ),
      jobBySeq: db.prepare<[number], JobRow>("SELECT * FROM jobs WHERE seq = ?"),
      payload: db.prepare<[number], { body: string }>("SELECT body FROM payloads WHERE job = ?"),
      steps: db.prepare<[number], StepRow>("SELECT * FROM steps WHERE job = ? ORDER BY position"),
      step: db.prepare<[number, number], StepRow>("SELECT * FROM steps WHERE job = ? AND position = ?"),
      lastAttempt: db.prepare<[number, number], AttemptRow>(
        "SELECT * FROM attempts WHERE job = ? AND step = ? ORDER BY number DESC LIMIT 1",
      ),
      attempts: db.prepare<[number, number, number], AttemptRow>(
        "SELECT * FROM attempts WHERE job = ? ORDER BY step, number LIMIT ? OFFSET ?",
      ),
      callback: db.prepare<[string], JobRow>(
        "SELECT * FROM jobs WHERE callback_of = ? ORDER BY seq DESC LIMIT 1",
      ),
      // One seek in jobs_status.
      newestBefore: db.prepare<[number, string, number], { seq: number | null }>(
        "SELECT max(seq) AS seq FROM jobs WHERE tenant = ? AND status = ? AND seq < ?",
      ),
    };
  }

  /** The row of a tenant's job; undefined for an unknown one. */
  row(tenant: Tenant, id: string): JobRow | undefined {
    const tenantId = this.directory.tenantId(tenant);
    return tenantId === null ? undefined : this.sql.job.get(id, tenantId);
  }

  rowBySeq(seq: number): JobRow | undefined {
    return this.sql.jobBySeq.get(seq);
  }

  /** The row of the current step; null for a plain job. */
  currentStep(row: JobRow): StepRow | null {
    return this.stepAt(row, row.step);
  }

  stepAt(row: JobRow, position: number): StepRow | null {
    return position < row.step_count ? (this.sql.step.get(row.seq, position) ?? null) : null;
  }

  stepsOf(row: JobRow): readonly StepRow[] {
    return row.step_count === 0 ? [] : this.sql.steps.all(row.seq);
  }

  lastAttempt(row: JobRow, step: number): AttemptRow | undefined {
    return this.sql.lastAttempt.get(row.seq, step);
  }

  payload(seq: number): RawJson | null {
    const row = this.sql.payload.get(seq);
    return row === undefined ? null : new RawJson(row.body);
  }

  job(row: JobRow, step: StepRow | null = this.currentStep(row)): Job {
    return this.rows.job(row, step, this.callback(row));
  }

  detail(row: JobRow): JobDetail {
    const steps = this.stepsOf(row).map((step): StepDetail => {
      const last = step.position > row.step ? undefined : this.lastAttempt(row, step.position);
      return {
        ...this.rows.step(step),
        attempts: step.position === row.step ? row.attempts : (last?.number ?? 0),
        response: responseOf(last),
        durationMs: last?.duration_ms ?? null,
        lastError: last?.error ?? null,
      };
    });
    const response =
      row.step_count === 0
        ? responseOf(row.attempts === 0 ? undefined : this.lastAttempt(row, 0))
        : (steps[row.step]?.response ?? null);
    return { ...this.job(row), payload: this.payload(row.seq), response, steps };
  }

  /** Oldest first. Later ones only ever come after them, so the cursor is how many came before. */
  attempts(row: JobRow, { limit, cursor }: PageRequest): Page<Attempt> {
    const names = this.stepsOf(row).map((step) => step.name);
    const before = cursor === null ? 0 : readCursor(cursor);
    const items: Attempt[] = [];
    let bytes = 0;
    for (const attempt of this.sql.attempts.iterate(row.seq, limit + 1, before)) {
      if (items.length === limit || bytes > PAGE_BYTES)
        return { items, nextCursor: String(before + items.length) };
      items.push(attemptOf(attempt, names[attempt.step] ?? null));
      bytes += attempt.body?.length ?? 0;
    }
    return { items, nextCursor: null };
  }

  /**
   * Newest first, by windows of the row number, so that a filter that matches little stops nobody: between two windows
   * the loop turns. Each begins at the next row that is there: row numbers without one cost nothing.
   */
  async page(tenant: Tenant, filter: JobFilter, page: PageRequest): Promise<Page<Job>> {
    const rows = await this.search(
      tenant,
      filter,
      page.limit + 1,
      page.cursor === null ? null : readCursor(page.cursor),
    );
    const items = rows.slice(0, page.limit).map((row) => this.job(row));
    return { items, nextCursor: rows.length > page.limit ? String(rows[page.limit - 1]!.seq) : null };
  }

  /** Rows that match, newest first, from before row `before`. */
  async search(tenant: Tenant, filter: JobFilter, limit: number, before: number | null): Promise<JobRow[]> {
    const where = this.conditions(tenant, filter);
    if (where === null) return [];
    const select = this.prepared(
      `SELECT * FROM jobs WHERE seq < ? AND seq >= ? AND ${where.text} AND status = ? ORDER BY seq DESC LIMIT ?`,
    );
    const newestBefore = (seq: number) =>
      Math.max(
        0,
        ...where.statuses.map((one) => this.sql.newestBefore.get(where.tenantId, one, seq)?.seq ?? 0),
      );
    const found: JobRow[] = [];
    let newest = newestBefore(before ?? Number.MAX_SAFE_INTEGER);
    while (newest > 0 && found.length < limit) {
      const [upper, lower] = [newest + 1, Math.max(0, newest + 1 - WINDOW_ROWS)];
      // Each state is read on its own: one range of the index jobs_status, already in order, however much is stored.
      const rows = where.statuses.flatMap((status) =>
        select.all(upper, lower, ...where.values, status, limit - found.length),
      );
      if (where.statuses.length > 1) rows.sort((a, b) => b.seq - a.seq);
      found.push(...rows.slice(0, limit - found.length));
      newest = newestBefore(lower);
      if (newest > 0 && found.length < limit) await turn();
    }
    return found;
  }

  private conditions(
    tenant: Tenant,
    filter: JobFilter,
  ): { tenantId: number; text: string; values: unknown[]; statuses: readonly JobStatus[] } | null {
    const tenantId = this.directory.tenantId(tenant);
    if (tenantId === null) return null;
    const parts = ["tenant = ?", "callback_of IS NULL"];
    const values: unknown[] = [tenantId];
    const add = (condition: string, value: unknown) => {
      parts.push(condition);
      values.push(value);
    };
    if (filter.queue !== undefined) {
      const queueId = this.directory.queueId(tenantId, filter.queue);
      if (queueId === null) return null;
      add("queue = ?", queueId);
    }
    if (filter.scheduleId !== undefined) add("schedule_id = ?", filter.scheduleId);
    if (filter.tag !== undefined) add("EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)", filter.tag);
    if (filter.urlContains !== undefined) {
      parts.push(
        "(instr(url, ?) > 0 OR EXISTS (SELECT 1 FROM steps WHERE steps.job = jobs.seq AND instr(steps.url, ?) > 0))",
      );
      values.push(filter.urlContains, filter.urlContains);
    }
    if (filter.createdAfter !== undefined) add("created_at > ?", filter.createdAfter);
    if (filter.createdBefore !== undefined) add("created_at < ?", filter.createdBefore);
    const statuses =
      filter.statuses === undefined || filter.statuses.length === 0
        ? STATUSES
        : [...new Set(filter.statuses)];
    return { tenantId, text: parts.join(" AND "), values, statuses };
  }

  private readonly preparedBySql = new Map<string, Statement<unknown[], JobRow>>();

  /** Filters make a handful of different texts, each prepared once. */
  private prepared(sql: string) {
    let statement = this.preparedBySql.get(sql);
    if (statement === undefined) {
      statement = this.db.prepare<unknown[], JobRow>(sql);
      this.preparedBySql.set(sql, statement);
    }
    return statement;
  }

  private callback(row: JobRow): Callback | null {
    if (row.callback_url === null) return null;
    const callback = this.sql.callback.get(row.id);
    if (callback === undefined) return null;
    const status =
      callback.status === "completed" ? "delivered" : callback.status === "failed" ? "failed" : "pending";
    return {
      status,
      attempts: callback.attempts,
      responseCode: callback.response_code,
      lastError: callback.last_error,
      nextRetryAt: callback.attempts > 0 ? callback.due_at : null,
    };
  }
}

/** A cursor is the row number of the last item: later pages hold what is older, whatever comes or goes meanwhile. */
export function readCursor(cursor: string): number {
  if (!/^\d{1,15}$/.test(cursor)) throw wrongCursor();
  return Number(cursor);
}

export function wrongCursor(): Problem {
  const detail = "has to be a next_cursor of an earlier page";
  return new Problem("invalid_request", `cursor ${detail}.`, { errors: [{ pointer: "/cursor", detail }] });
}

/** How many of these rows a page holds: up to `limit`, and none after those that have {@link PAGE_BYTES} together. */
export function countOfPage(rows: readonly { readonly bytes: number }[], limit: number): number {
  let bytes = 0;
  const full = rows.findIndex((row) => (bytes += row.bytes) > PAGE_BYTES);
  return Math.min(limit, full === -1 ? rows.length : full + 1);
}
