/**
 * BullMQ's part in the benchmark `peer`, as its guide sets it up: `route` is a bare HTTP route that adds jobs, `worker`
 * another process that delivers them and stores the answer. `bullmq` is found by NODE_PATH: see peer.ts.
 */
const { serve } = require("@hono/node-server");
const { Queue, Worker } = require("bullmq");
const { Hono } = require("hono");
const { Agent, request } = require("undici");

const QUEUE = "deliveries";
const CONCURRENCY = 64; // as many as Errand has under way at one origin
const connection = { host: "127.0.0.1", port: Number(process.env["REDIS_PORT"]) };
const say = (port) => process.stdout.write(`{"port":${port}}\n`);

function route() {
  const queue = new Queue(QUEUE, { connection });
  const app = new Hono();
  app.post("/v1/jobs", async (c) => {
    const { url, payload } = await c.req.json();
    const options = { attempts: 3, backoff: { type: "exponential", delay: 20_000 } };
    const job = await queue.add("deliver", { url, payload }, options);
    return c.json({ id: job.id, status: "pending" }, 201);
  });
  serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) => say(port));
}

function worker() {
  const dispatcher = new Agent({ connections: CONCURRENCY, pipelining: 1 });
  const headers = { "content-type": "application/json" };
  const deliver = async ({ data }) => {
    const body = JSON.stringify(data.payload);
    const response = await request(data.url, { method: "POST", dispatcher, headers, body });
    const text = await response.body.text();
    if (response.statusCode >= 300) throw new Error(`the target answered ${response.statusCode}`);
    return { code: response.statusCode, text };
  };
  const working = new Worker(QUEUE, deliver, { connection, concurrency: CONCURRENCY });
  working.on("error", (error) => {
    process.stdout.write(`${error.message}\n`);
    process.exit(1);
  });
  working.on("ready", () => say(0));
}

process.on("SIGTERM", () => process.exit(0));
if (process.argv[2] === "route") route();
else worker();
