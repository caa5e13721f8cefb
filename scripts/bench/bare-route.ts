/** Baseline: a bare Hono route with Errand's validation and key check, and no storage. */
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { hashApiKey, modeOfKey } from "../../src/accounts/api-key.ts";
import { parseJson, stringify } from "../../src/base/json.ts";
import { checkInput } from "../../src/operations/faults.ts";
import { checkWork, jobFields } from "../../src/operations/job-input.ts";
import type { Operation } from "../../src/operations/operation.ts";

const key = process.env["ERRAND_TEST_KEY"] ?? "";
const keys = new Map([[hashApiKey(key), "test"]]);
const create = { input: jobFields, check: checkWork } as unknown as Operation;
const RAW = new Set(["payload"]);

const app = new Hono();
app.post("/v1/jobs", async (c) => {
  const given = c.req.header("authorization")?.slice("Bearer ".length) ?? "";
  if (modeOfKey(given) === null || !keys.has(hashApiKey(given))) return c.json({ code: "unauthorized" }, 401);
  const fields = checkInput(
    create,
    parseJson(await c.req.text(), (path) => RAW.has(path)),
  );
  const job = { id: "job_00000000000000000000000000", status: "pending", ...fields };
  return c.body(stringify(job), 201, { "content-type": "application/json" });
});
serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) =>
  process.stdout.write(`{"port":${port}}\n`),
);
process.on("SIGTERM", () => process.exit(0));
