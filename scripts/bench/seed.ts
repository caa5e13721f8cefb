/** Fills a data folder with many copies of one job, much faster than the API could. */
import Database from "better-sqlite3";
import { KEY, type Server, startErrand } from "./server.ts";

export interface Seeds {
  readonly count: number;
  /** The job that is copied, as the API takes it. It is created with a delay, so that it stays as it is. */
  readonly job: Record<string, unknown>;
  /** What the copies have instead of the job's own columns. */
  readonly columns?: Readonly<Record<string, string | number | null>>;
}

/** A new data folder with the copies in it, and Errand's process gone. Their order and ids are those of real jobs. */
export async function seededFolder({ count, job, columns = {} }: Seeds): Promise<Server> {
  const errand = await startErrand();
  const created = await fetch(`${errand.url}/v1/jobs`, {
    method: "POST",
    headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ delay: "1d", ...job }),
  });
  if (created.status !== 201) throw new Error(`the first job was refused: ${await created.text()}`);
  await errand.stop({ keep: true });
  const db = new Database(`${errand.folder}/errand.db`);
  const names = (db.pragma("table_info(jobs)") as { name: string }[]).map(({ name }) => name);
  const values = names.map((name) => {
    if (name === "seq") return "seq + n";
    if (name === "id") return "substr(id, 1, 14) || printf('%016d', n)";
    return name in columns ? `:${name}` : name;
  });
  const numbers = `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count})`;
  db.transaction(() => {
    db.prepare(
      `${numbers} INSERT INTO jobs (${names.join(", ")})
       SELECT ${values.join(", ")} FROM numbers, (SELECT * FROM jobs LIMIT 1)`,
    ).run(columns);
    db.exec(`${numbers} INSERT INTO payloads (job, body)
       SELECT job + n, body FROM numbers, (SELECT * FROM payloads LIMIT 1);
       DELETE FROM queue_counts;
       INSERT INTO queue_counts (queue, status, count) SELECT queue, status, count(*) FROM jobs GROUP BY queue, status`);
  })();
  db.close();
  return errand;
}
