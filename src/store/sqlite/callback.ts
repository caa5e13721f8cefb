/** The end of a job with a `callback_url` makes one more job, which nobody lists, in the same transaction. */
import { newId } from "../../base/ids.ts";
import { callbackJob } from "../../jobs/callback.ts";
import { type Changes, FINAL } from "../../jobs/lifecycle.ts";
import type { InsertJob } from "./insert.ts";
import type { JobReader } from "./read.ts";
import type { JobRow } from "./rows.ts";
import type { Transaction } from "./writer.ts";

/** Answers how long the body of the callback is, 0 where there is none. */
export type WriteCallback = (transaction: Transaction, before: JobRow, changes: Changes) => number;

/** Called after the transition and its attempt were written, since the callback shows both. */
export function callbackWriter(reader: JobReader, insert: InsertJob): WriteCallback {
  return (transaction, before, changes) => {
    // The row is read anew only for those few: every delivery comes by here.
    if (!FINAL.has(changes.status) || before.callback_url === null || before.callback_of !== null) return 0;
    const row = reader.rowBySeq(before.seq);
    if (row === undefined || row.callback_url === null) return 0;
    const now = changes.updatedAt;
    const callback = callbackJob(reader.detail(row), row.callback_url, newId("cb", now), now);
    insert(transaction, row.tenant, callback, now, row.id);
    return callback.payload?.text.length ?? 0;
  };
}
