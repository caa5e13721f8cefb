/**
 * A process of its own that opens a data folder with one migration more than this version has, as a later version may:
 * the jobs table made anew with a further column. It prints each step of the migrator as it begins, then "open".
 *
 *   migrating.ts FOLDER [without-transaction]
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { systemClock } from "../../src/base/clock.ts";
import { secretBox } from "../../src/base/secret-box.ts";
import { MIGRATIONS } from "../../src/store/sqlite/migrations.ts";
import { openStore } from "../../src/store/sqlite/open.ts";

/** The order that https://sqlite.org/lang_altertable.html gives. */
function rebuild(init: string): string {
  const [table = ""] = /^CREATE TABLE jobs \(.*?^\) STRICT;$/ms.exec(init) ?? [];
  const indexes = init.match(/^CREATE INDEX jobs_[^;]+;$/gm) ?? [];
  const rebuilt = table
    .replace("CREATE TABLE jobs", "CREATE TABLE jobs_rebuilt")
    .replace(
      "  scheduled_for INTEGER,\n",
      "  scheduled_for INTEGER,\n  dedupe_until INTEGER,\n  colour TEXT,\n",
    );
  return `${rebuilt}
    INSERT INTO jobs_rebuilt SELECT *, 'green' FROM jobs;
    DROP TABLE jobs;
    ALTER TABLE jobs_rebuilt RENAME TO jobs;
    ${indexes.join("\n")}`;
}

/** `before` is told of every statement that goes through a method of a connection; where it answers false, nothing is done. */
function intercept(method: "exec" | "prepare", before: (sql: string) => boolean): void {
  const real = Reflect.get(Database.prototype, method) as (sql: string) => unknown;
  Reflect.set(Database.prototype, method, function (this: Database.Database, sql: string) {
    return before(sql) ? real.call(this, sql) : this;
  });
}

const [folder = "", how] = process.argv.slice(2);
const migration = { name: "9000_rebuild", sql: rebuild(MIGRATIONS[0]?.sql ?? "") };
(MIGRATIONS as (typeof migration)[]).push(migration);
intercept("prepare", (sql) => {
  if (sql.startsWith("VACUUM INTO")) console.log("copy");
  return true;
});
intercept("exec", (sql) => {
  if (sql === migration.sql) console.log("rebuild");
  if (sql === "COMMIT") console.log("commit");
  return how !== "without-transaction" || !/^(BEGIN|COMMIT)/.test(sql);
});

const box = secretBox(readFileSync(join(folder, "secret-key"), "utf8").trim());
const store = openStore({ folder, box, clock: systemClock });
console.log("open");
await store.close();
