/** Baseline: the smallest program of the same stack that stores a job durably, delivers it and stores the answer. */
import { join } from "node:path";
import { serve } from "@hono/node-server";
import Database from "better-sqlite3";
import { Hono } from "hono";
import { Agent, request } from "undici";

const db = new Database(join(process.env["ERRAND_DATA_DIR"] ?? ".", "smallest.db"));
db.pragma("journal_mode = WAL");
db.pragma("synchronous = FULL");
db.exec(`CREATE TABLE jobs (id INTEGER PRIMARY KEY, url TEXT, payload TEXT, status TEXT, code INTEGER, response TEXT);
  CREATE INDEX pending ON jobs (id) WHERE status = 'pending'`);
const insert = db.prepare("INSERT INTO jobs (url, payload, status) VALUES (?, ?, 'pending') RETURNING id");
const claim = db.prepare<[number], { id: number; url: string; payload: string }>(
  `UPDATE jobs SET status = 'active' WHERE id IN (SELECT id FROM jobs WHERE status = 'pending' ORDER BY id LIMIT ?)
   RETURNING id, url, payload`,
);
const finish = db.prepare("UPDATE jobs SET status = ?, code = ?, response = ? WHERE id = ?");

const dispatcher = new Agent({ connections: 64, pipelining: 1 });
let active = 0;

function dispatch(): void {
  if (active >= 64) return;
  for (const job of claim.all(64 - active)) {
    active += 1;
    void deliver(job);
  }
}

async function deliver(job: { id: number; url: string; payload: string }): Promise<void> {
  const headers = { "content-type": "application/json" };
  const response = await request(job.url, { method: "POST", dispatcher, headers, body: job.payload });
  const text = await response.body.text();
  finish.run(response.statusCode < 300 ? "completed" : "failed", response.statusCode, text, job.id);
  active -= 1;
  dispatch();
}

const app = new Hono();
app.post("/v1/jobs", async (c) => {
  const { url, payload } = await c.req.json<{ url: string; payload: unknown }>();
  const row = insert.get(url, JSON.stringify(payload)) as { id: number };
  setImmediate(dispatch);
  return c.json({ id: row.id, status: "pending" }, 201);
});
serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) =>
  process.stdout.write(`{"port":${port}}\n`),
);
process.on("SIGTERM", () => process.exit(0));
