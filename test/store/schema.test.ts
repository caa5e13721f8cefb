/** The tables: drizzle's description equals them, and they refuse by themselves what the lifecycle never makes. */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import Database from "better-sqlite3";
import { getTableConfig, SQLiteTable } from "drizzle-orm/sqlite-core";
import { loadAddon } from "../../src/store/sqlite/native.ts";
import * as schema from "../../src/store/sqlite/schema.ts";
import { temporaryFolder } from "../support/app.ts";
import { newJob, newPipeline, newStep, TENANT } from "../support/factories.ts";
import { openTestStore } from "../support/store.ts";

const NOW = Date.parse("2026-01-05T00:00:00Z");

describe("the schema", () => {
  const folder = temporaryFolder();
  let db: Database.Database;
  before(async () => {
    const { store } = await openTestStore({ folder });
    await store.jobs.enqueue(
      TENANT,
      [newJob(NOW), newPipeline(NOW, [newStep("a"), newStep("b")])],
      NOW,
      null,
    );
    await store.close();
    db = new Database(join(folder, "errand.db"), { nativeBinding: loadAddon("") });
    db.pragma("foreign_keys = ON");
  });
  after(() => {
    db.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test("every table is STRICT, and what drizzle says of one is what it is", () => {
    const tables = db.pragma("table_list") as { name: string; schema: string; strict: number }[];
    for (const { name, strict } of tables) if (!name.startsWith("sqlite_")) assert.equal(strict, 1, name);

    const described = Object.values(schema).filter((value) => value instanceof SQLiteTable);
    assert.ok(described.length >= 9);
    for (const table of described) {
      const { name, columns } = getTableConfig(table);
      const real = db.pragma(`table_info(${name})`) as {
        name: string;
        type: string;
        notnull: number;
        pk: number;
      }[];
      assert.deepEqual(
        columns.map((column) => [column.name, column.getSQLType().toUpperCase(), column.notNull]),
        real.map((column) => [column.name, column.type, column.notnull === 1 || column.pk > 0]),
        name,
      );
    }
  });

  test("a new file has no free pages, for which retention would start the second thread at once", () => {
    assert.equal(db.pragma("freelist_count", { simple: true }), 0);
  });

  test("what can be large lies in rows of their own, not in the tree of the keys, where each look-up would read it", () => {
    const tables = db.pragma("table_list") as { name: string; wr: number }[];
    const large = tables
      .filter(({ wr }) => wr === 1)
      .flatMap(({ name }) => {
        const columns = db.pragma(`table_info(${name})`) as { name: string }[];
        return columns.map((column) => `${name}.${column.name}`);
      })
      .filter((column) => /\.(?:body|headers|payload|sealed|template)$/.test(column));
    assert.deepEqual(large, []);
  });

  const refusedChanges = [
    ["a state that is none", "status = 'lost'"],
    ["pending without a due time", "due_at = NULL"],
    ["active without an attempt", "status = 'active', due_at = NULL"],
    ["active with a due time", "status = 'active', attempts = 1, started_at = 1"],
    ["an end without a time", "status = 'completed', due_at = NULL"],
    ["a time of an end that was none", "finished_at = 1"],
    ["more spent than attempted", "spent = 1"],
    ["no attempts at all", "max_attempts = 0"],
    ["more attempts than anyone may ask for", "max_attempts = 101"],
    ["a step beyond the last", "step = 2"],
    ["a plain job without a URL", "url = NULL, step_count = 0"],
    ["tags that are no JSON", "tags = '['"],
    ["a text where a time belongs", "run_at = 'soon'"],
    ["a lane that does not exist", "lane = 999"],
    ["a pending job in no lane", "lane = NULL"],
  ] as const;
  for (const [what, change] of refusedChanges) {
    test(`refuses ${what}`, () => {
      assert.throws(() => db.exec(`UPDATE jobs SET ${change}`), /constraint|cannot store/i);
    });
  }

  test("refuses wrong schedules, queues and attempts", () => {
    const statements = [
      "INSERT INTO queues (tenant, name, concurrency, created_at) VALUES (1, 'x', 0, 0)",
      "INSERT INTO queues (tenant, name, rate_limit, created_at) VALUES (1, 'x', 5, 0)",
      "INSERT INTO queues (tenant, name, created_at) VALUES (999, 'x', 0)",
      "INSERT INTO attempts (job, step, number, started_at, decision) VALUES (1, 0, 0, 0, '')",
      "INSERT INTO attempts (job, step, number, started_at, decision) VALUES (999, 0, 1, 0, '')",
      "INSERT INTO tenants (account_id, mode) VALUES ('acct_test', 'prod')",
      "INSERT INTO api_keys (id, tenant, hash, name, hint, scopes, created_at) VALUES ('k', 1, 'short', '', '', '[]', 0)",
      `INSERT INTO schedules (id, tenant, cron_expr, timezone, template, on_missed, on_overlap, paused, next_run_at, created_at, updated_at)
       VALUES ('s', 1, '', '', '{}', 'once', 'allow', 1, 5, 0, 0)`,
    ];
    for (const statement of statements) assert.throws(() => db.exec(statement), /constraint/i, statement);
  });

  test("the statements of the hot path use their index", () => {
    const plans = {
      due: "SELECT * FROM jobs WHERE lane = 1 AND due_at <= 5 ORDER BY due_at, seq LIMIT 9",
      lane: "SELECT 1 FROM jobs WHERE lane = 1",
      list: "SELECT * FROM jobs WHERE seq < 9 AND seq >= 0 AND tenant = 1 AND callback_of IS NULL AND status = 'failed' ORDER BY seq DESC LIMIT 9",
      unfinished:
        "SELECT * FROM jobs WHERE tenant = 1 AND dedupe_key = 'k' AND status IN ('pending', 'active', 'awaiting_approval') ORDER BY seq DESC LIMIT 1",
      young:
        "SELECT * FROM jobs WHERE tenant = 1 AND dedupe_key = 'k' AND status <> 'cancelled' AND created_at > 5 ORDER BY created_at DESC LIMIT 1",
      schedules: "SELECT seq FROM schedules WHERE next_run_at <= 5 ORDER BY next_run_at LIMIT 9",
    };
    for (const [name, statement] of Object.entries(plans)) {
      const plan = db.prepare(`EXPLAIN QUERY PLAN ${statement}`).all() as { detail: string }[];
      const text = plan.map(({ detail }) => detail).join("; ");
      assert.match(text, /USING (COVERING )?INDEX/, name);
      assert.doesNotMatch(text, /TEMP B-TREE|^SCAN jobs$/, name);
      if (name === "unfinished") assert.match(text, /jobs_dedupe_open \(tenant=\? AND dedupe_key=\?\)/);
      if (name === "young") assert.match(text, /\(tenant=\? AND dedupe_key=\? AND created_at>\?\)/);
    }
  });
});
