/** `Idempotency-Key`: a command runs once, and its answer is kept in the same transaction to be repeated. */
import { Problem } from "../../base/errors.ts";
import type { SecretBox } from "../../base/secret-box.ts";
import type { Once, OnceResult } from "../store.ts";
import type { Connection } from "./connection.ts";

/** How long an answer is kept. */
export const ANSWER_KEPT_MS = 24 * 3_600_000;

export type OnceWriter = <T>(
  tenantId: number,
  once: Once<T> | null,
  now: number,
  run: () => T,
) => OnceResult<T>;

interface AnswerRow {
  fingerprint: string;
  status: number;
  sealed: string;
}

/** Prepares the statements; the answer runs inside a transaction of the caller. */
export function onceWriter(db: Connection, box: SecretBox): OnceWriter {
  const find = db.prepare<[number, string, number], AnswerRow>(
    "SELECT fingerprint, status, sealed FROM answers WHERE tenant = ? AND key = ? AND created_at > ?",
  );
  const keep = db.prepare(
    "INSERT OR REPLACE INTO answers (tenant, key, fingerprint, status, sealed, created_at) VALUES (?, ?, ?, ?, ?, ?)",
  );

  return (tenantId, once, now, run) => {
    if (once === null) return { value: run() };
    const known = find.get(tenantId, once.key, now - ANSWER_KEPT_MS);
    if (known !== undefined) {
      if (known.fingerprint !== once.fingerprint) {
        throw new Problem(
          "idempotency_key_reused",
          "This Idempotency-Key was used for another request in the last 24 hours. Repeat that request unchanged, or take a new key.",
        );
      }
      const kept = JSON.parse(box.open(known.sealed)) as { headers: Record<string, string>; body: string };
      return { replay: { status: known.status, ...kept } };
    }
    const value = run();
    const { status, headers, body } = once.answer(value);
    keep.run(tenantId, once.key, once.fingerprint, status, box.seal(JSON.stringify({ headers, body })), now);
    return { value };
  };
}
