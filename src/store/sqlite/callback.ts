/** The end of a job with a `callback_url` makes one more job, which nobody lists, in the same transaction. */
import { newId } from "../../base/ids.ts";
import { callbackJob } from "../../jobs/callback.ts";
import { type Changes, FINAL } from "../../jobs/lifecycle.ts";
import type { InsertJob } from "./insert.ts";
import type { JobReader } from "./read.ts";
import type { Transaction } from "./writer.ts";

export type WriteCallback = (transaction: Transaction, seq: number, changes: Changes) => void;

/** Called after the transition and its attempt were written, since the callback shows both. */
export function callbackWriter(reader: JobReader, insert: InsertJob): WriteCallback {
  return (transaction, seq, changes) => {
    if (!FINAL.has(changes.status)) return;
    const row = reader.rowBySeq(seq);
    if (row === undefined || row.callback_url === null || row.callback_of !== null) return;
    const now = changes.updatedAt;
    const callback = callbackJob(reader.detail(row), row.callback_url, newId("cb", now), now);
    insert(transaction, row.tenant, callback, now, row.id);
  };
}
