/** Every tool, driven by the official client: over HTTP and stdio, in the current protocol version and earlier ones. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Client, Tool } from "@modelcontextprotocol/client";
import { startTestApp, type TestApp } from "../support/app.ts";
import { CURRENT, codeOf, connectMcp, type Door, dataOf, textOf } from "../support/mcp.ts";
import { startTarget, type Target } from "../support/target.ts";

/** CONTRACT §7. */
const TOOLS =
  "create_job create_jobs get_job wait_for_job list_jobs get_job_attempts cancel_job approve_job reject_job retry_job create_schedule list_schedules get_schedule update_schedule pause_schedule resume_schedule trigger_schedule delete_schedule preview_schedule list_queues pause_queue resume_queue get_usage".split(
    " ",
  );

const DOORS: readonly Door[] = [
  { by: "http", version: CURRENT },
  { by: "http", version: "2025-11-25" },
  { by: "http", version: "2025-06-18" },
  { by: "http", version: "2025-03-26" },
  { by: "stdio", version: CURRENT },
  { by: "stdio", version: "2025-06-18" },
];

let app: TestApp;
let target: Target;
before(async () => {
  app = await startTestApp();
  target = await startTarget(() => ({ body: `{"id":12345678901234567890}` }));
});
after(async () => {
  await app.stop();
  await target.close();
});

for (const door of DOORS) {
  describe(`the tools over ${door.by}, protocol version ${door.version}`, () => {
    let client: Client;
    let tools: Map<string, Tool>;
    const called = new Set<string>();
    const call = (name: string, input: Record<string, unknown> = {}) => {
      called.add(name);
      return client.callTool({ name, arguments: input });
    };
    before(async () => {
      client = await connectMcp(app, door);
      tools = new Map((await client.listTools()).tools.map((tool) => [tool.name, tool]));
    });
    after(() => client.close());

    test("the version is the one asked for, and the tools are the contract's", () => {
      assert.equal(client.getNegotiatedProtocolVersion(), door.version);
      assert.equal(client.getServerVersion()?.name, "errand");
      assert.match(client.getInstructions() ?? "", /create_job/);
      assert.deepEqual([...tools.keys()].toSorted(), TOOLS.toSorted());
      for (const { inputSchema, outputSchema, description, title, annotations, name } of tools.values()) {
        assert.equal(inputSchema.type, "object");
        assert.equal(inputSchema["additionalProperties"], false);
        assert.equal(outputSchema?.type, "object", name);
        assert.ok(title && description && annotations, name);
      }
    });

    test("jobs: made, waited for, read, listed, with their attempts", async () => {
      const job = dataOf(await call("create_job", { url: target.url, payload: { n: 1 } }));
      const ended = await call("wait_for_job", { id: job["id"] });
      assert.equal(dataOf(ended)["status"], "completed");
      // The text is the REST API's, to the byte.
      assert.match(textOf(ended), /"response_body":\{"id":12345678901234567890\}/);
      assert.deepEqual(dataOf(await call("get_job", { id: job["id"] })), dataOf(ended));
      assert.equal(dataOf(await call("get_job_attempts", { id: job["id"] }))["data"].length, 1);

      const made = dataOf(
        await call("create_jobs", {
          jobs: [1, 2, 3].map((n) => ({ url: target.url, tags: ["many", door.version], payload: n })),
        }),
      );
      assert.equal(made["data"].length, 3);
      const page = dataOf(await call("list_jobs", { tag: "many", limit: 2 }));
      assert.equal(page["data"].length, 2);
      const rest = dataOf(await call("list_jobs", { tag: "many", limit: 2, cursor: page["next_cursor"] }));
      assert.notEqual(rest["data"][0].id, page["data"][0].id);
      assert.equal(codeOf(await call("list_jobs", { limit: 101 })), "invalid_request");
      assert.equal(codeOf(await call("list_jobs", { status: [] })), "invalid_request");
    });

    test("jobs: approved, rejected, cancelled, retried", async () => {
      const waiting = async () =>
        dataOf(await call("create_job", { url: target.url, requires_approval: true }))["id"];
      const approved = dataOf(await call("approve_job", { id: await waiting(), note: "fine" }));
      assert.equal(approved["approval_note"], "fine");
      const rejected = dataOf(await call("reject_job", { id: await waiting() }));
      assert.equal(rejected["status"], "cancelled");
      const { id } = dataOf(await call("create_job", { url: target.url, delay: "1h" }));
      assert.equal(dataOf(await call("cancel_job", { id }))["status"], "cancelled");
      assert.equal(codeOf(await call("cancel_job", { id })), "not_cancellable");
      assert.notEqual(dataOf(await call("retry_job", { id }))["status"], "cancelled");
    });

    test("schedules", async () => {
      const made = dataOf(
        await call("create_schedule", { cron_expr: "0 9 * * 1", timezone: "Europe/Berlin", url: target.url }),
      );
      const id = made["id"];
      assert.ok(dataOf(await call("list_schedules"))["data"].some((one: { id: string }) => one.id === id));
      assert.deepEqual(dataOf(await call("get_schedule", { id })), made);
      assert.equal(
        dataOf(await call("update_schedule", { id, cron_expr: "0 8 * * *" }))["cron_expr"],
        "0 8 * * *",
      );
      assert.equal(dataOf(await call("pause_schedule", { id }))["paused"], true);
      assert.equal(dataOf(await call("resume_schedule", { id }))["paused"], false);
      assert.equal(dataOf(await call("trigger_schedule", { id }))["schedule_id"], id);
      const deleted = await call("delete_schedule", { id });
      assert.deepEqual([textOf(deleted), dataOf(deleted)], ["Done.", {}]);
      assert.equal(codeOf(await call("get_schedule", { id })), "not_found");
      const preview = dataOf(await call("preview_schedule", { cron_expr: "*/5 * * * *", count: 3 }));
      assert.equal(Object.values(preview).find(Array.isArray)?.length, 3);
    });

    test("queues and usage", async () => {
      dataOf(await call("list_queues"));
      const queue = `q-${door.by}-${door.version}`;
      dataOf(await call("create_job", { url: target.url, queue, delay: "1h" }));
      assert.equal(dataOf(await call("pause_queue", { name: queue }))["paused"], true);
      assert.equal(dataOf(await call("resume_queue", { name: queue }))["paused"], false);
      assert.equal(typeof dataOf(await call("get_usage"))["jobs"], "number");
    });

    test("every tool was called", () => {
      assert.deepEqual([...called].toSorted(), [...tools.keys()].toSorted());
    });
  });
}
