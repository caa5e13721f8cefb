/** Every migration, oldest first. A released one never changes: its hash stands in users' files. */
import init from "../../../drizzle/0000_init.sql";
import dedupeUntil from "../../../drizzle/0001_dedupe_until.sql";
import dedupeFound from "../../../drizzle/0002_dedupe_found.sql";
import largeRows from "../../../drizzle/0003_large_rows.sql";

export const MIGRATIONS: readonly { readonly name: string; readonly sql: string }[] = [
  { name: "0000_init", sql: init },
  { name: "0001_dedupe_until", sql: dedupeUntil },
  { name: "0002_dedupe_found", sql: dedupeFound },
  { name: "0003_large_rows", sql: largeRows },
];
