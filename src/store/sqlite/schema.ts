/** The tables that drizzle's query builder reads and writes. The reviewed SQL in drizzle/ is what makes them. */
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

export const accounts = sqliteTable("accounts", {
  id: text().primaryKey(),
  name: text().notNull(),
  createdAt: integer("created_at").notNull(),
});

export const tenants = sqliteTable("tenants", {
  id: integer().primaryKey(),
  accountId: text("account_id").notNull(),
  mode: text({ enum: ["test", "live"] }).notNull(),
});

export const apiKeys = sqliteTable("api_keys", {
  id: text().primaryKey(),
  tenant: integer().notNull(),
  hash: text().notNull(),
  name: text().notNull(),
  hint: text().notNull(),
  scopes: text({ mode: "json" }).$type<readonly ("read" | "write" | "approve" | "admin")[]>().notNull(),
  createdAt: integer("created_at").notNull(),
});

export const signingSecrets = sqliteTable("signing_secrets", {
  id: text().primaryKey(),
  tenant: integer().notNull(),
  sealed: text().notNull(),
  createdAt: integer("created_at").notNull(),
  expiresAt: integer("expires_at"),
});

export const queues = sqliteTable("queues", {
  id: integer().primaryKey(),
  tenant: integer().notNull(),
  name: text().notNull(),
  concurrency: integer(),
  rateLimit: integer("rate_limit"),
  ratePeriod: text("rate_period"),
  paused: integer({ mode: "boolean" }).notNull().default(false),
  createdAt: integer("created_at").notNull(),
});

export const queueCounts = sqliteTable("queue_counts", {
  queue: integer().notNull(),
  status: text({
    enum: ["pending", "active", "completed", "failed", "cancelled", "awaiting_approval"],
  }).notNull(),
  count: integer().notNull(),
});

export const usage = sqliteTable("usage", {
  tenant: integer().notNull(),
  day: text().notNull(),
  jobs: integer().notNull(),
  deliveries: integer().notNull(),
});

export const schedules = sqliteTable("schedules", {
  seq: integer().primaryKey(),
  id: text().notNull(),
  tenant: integer().notNull(),
  name: text(),
  cronExpr: text("cron_expr").notNull(),
  timezone: text().notNull(),
  template: text().notNull(),
  onMissed: text("on_missed", { enum: ["skip", "once", "all"] }).notNull(),
  onOverlap: text("on_overlap", { enum: ["allow", "skip"] }).notNull(),
  startsAt: integer("starts_at"),
  endsAt: integer("ends_at"),
  paused: integer({ mode: "boolean" }).notNull(),
  nextRunAt: integer("next_run_at"),
  lastRunAt: integer("last_run_at"),
  lastJobId: text("last_job_id"),
  createdAt: integer("created_at").notNull(),
  updatedAt: integer("updated_at").notNull(),
});

export const occurrences = sqliteTable("occurrences", {
  schedule: integer().notNull(),
  scheduledFor: integer("scheduled_for").notNull(),
  outcome: text({ enum: ["fired", "late", "missed", "skipped_overlap"] }).notNull(),
  jobId: text("job_id"),
  latenessMs: integer("lateness_ms"),
});
