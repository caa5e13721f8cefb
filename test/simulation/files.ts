/** What simulations do with files: the folder that each begins with, and looks into a database past the store. */
import { copyFileSync, existsSync, mkdtempSync, rmSync, statSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { secretBox } from "../../src/base/secret-box.ts";
import type { Tenant } from "../../src/base/tenant.ts";
import { createAccount } from "../../src/first-boot.ts";
import type { JobStatus } from "../../src/jobs/job.ts";
import { loadAddon } from "../../src/store/sqlite/native.ts";
import { DATABASE_FILE, openStore } from "../../src/store/sqlite/open.ts";
import { VirtualClock } from "../support/clock.ts";
import type { Random } from "./random.ts";

/** When every simulation begins: a moment before the hour, so that schedules have something to do. */
export const START = Date.parse("2026-03-02T09:58:30.000Z");

export const box = secretBox("the key of every simulation, 32 characters and more");
/** On a disk of memory where there is one. */
const shared = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

export function newRoot(): string {
  return mkdtempSync(join(shared, "errand-simulation-"));
}

export interface Template {
  readonly folder: string;
  readonly tenants: readonly [Tenant, Tenant];
}

let made: Promise<Template> | null = null;

/** A data folder with an account in it, made once and copied by each simulation. */
export function template(): Promise<Template> {
  made ??= makeTemplate();
  return made;
}

async function makeTemplate(): Promise<Template> {
  const folder = newRoot();
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const store = openStore({ folder, box, clock: new VirtualClock(START) });
  const { id } = await createAccount(store, "Simulation", {}, START);
  await store.close();
  return {
    folder,
    tenants: [
      { accountId: id, mode: "test" },
      { accountId: id, mode: "live" },
    ],
  };
}

export interface StoredJob {
  readonly id: string;
  readonly status: JobStatus;
  readonly finished_at: number | null;
  readonly callbacks: number;
}

export interface StoredJobs {
  /** Without callbacks. */
  readonly rows: readonly StoredJob[];
  /** The last attempt that began of each step, by job and step. */
  readonly begun: ReadonlyMap<string, number>;
  /** Of all, callbacks too. */
  readonly ids: ReadonlySet<string>;
}

/** What a file knows that no store has open. */
export function readJobs(file: string): StoredJobs {
  const db = openRaw(file);
  const rows = db
    .prepare<[], StoredJob>(
      `SELECT id, status, finished_at, (SELECT count(*) FROM jobs AS callbacks WHERE callbacks.callback_of = jobs.id) AS callbacks
       FROM jobs WHERE callback_of IS NULL`,
    )
    .all();
  const begun = new Map<string, number>();
  const steps = db
    .prepare<[], { id: string; step: number; number: number }>(
      `SELECT id, attempts.step, max(number) AS number FROM attempts JOIN jobs ON seq = job GROUP BY job, attempts.step
       UNION ALL SELECT id, step, attempts FROM jobs WHERE attempts > 0`,
    )
    .all();
  for (const { id, step, number } of steps)
    begun.set(`${id}/${step}`, Math.max(number, begun.get(`${id}/${step}`) ?? 0));
  const ids = new Set(db.prepare<[], string>("SELECT id FROM jobs").pluck().all());
  db.close();
  return { rows, begun, ids };
}

/** The files of one data folder as they are in this moment. */
export function copyData(from: string, to: string): void {
  for (const name of [DATABASE_FILE, `${DATABASE_FILE}-wal`])
    if (existsSync(join(from, name))) copyFileSync(join(from, name), join(to, name));
}

export function hasLog(folder: string): boolean {
  return existsSync(join(folder, `${DATABASE_FILE}-wal`));
}

/** Of a log that a power cut met: the disk may have written more of it than it was asked to. */
export function shortenLog(folder: string, certain: number, random: Random): void {
  const log = join(folder, `${DATABASE_FILE}-wal`);
  const size = statSync(log, { throwIfNoEntry: false })?.size ?? 0;
  if (size > certain) truncateSync(log, random.chance(0.5) ? certain : random.between(certain, size));
}

/** The database as it is, past the store. */
export function openRaw(file: string): Database.Database {
  return new Database(file, { nativeBinding: loadAddon("") });
}
