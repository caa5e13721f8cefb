/** What the target receives, header by header. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { buildRequest, type Delivery } from "../../src/delivery/request.ts";
import { signWebhook } from "../../src/delivery/signature.ts";

const SECRETS = [`whsec_${Buffer.alloc(32, 1).toString("base64")}`];
const NOW_S = 1_700_000_000;

function headersOf(
  changes: Partial<Omit<Delivery, "task">> & { task?: Partial<Delivery["task"]> },
): Map<string, string> {
  const { task, ...rest } = changes;
  const request = buildRequest(
    {
      jobId: "job_1",
      messageId: "job_1",
      attempt: 2,
      scheduleId: null,
      body: "{}",
      bodyHeaders: { "content-type": "application/json" },
      secrets: SECRETS,
      ...rest,
      task: { method: "POST", url: "https://example.com/hook?a=b#c", headers: {}, ...task },
    },
    NOW_S,
    "1.2.3",
  );
  const headers = new Map<string, string>();
  for (let i = 0; i < request.headers.length; i += 2) {
    const name = (request.headers[i] ?? "").toLowerCase();
    assert.equal(headers.has(name), false, `${name} is there twice`);
    headers.set(name, request.headers[i + 1] ?? "");
  }
  return headers;
}

test("a delivery with a payload has exactly these headers", () => {
  assert.deepEqual(Object.fromEntries(headersOf({})), {
    "user-agent": "Errand/1.2.3",
    "content-type": "application/json",
    "errand-job-id": "job_1",
    "errand-attempt": "2",
    "webhook-id": "job_1",
    "webhook-timestamp": "1700000000",
    "webhook-signature": signWebhook(SECRETS, "job_1", NOW_S, "{}"),
  });
});

test("a job of a schedule names it; a step has a message id of its own", () => {
  const headers = headersOf({ scheduleId: "sch_1", messageId: "job_1-2" });
  assert.equal(headers.get("errand-schedule-id"), "sch_1");
  assert.equal(headers.get("webhook-id"), "job_1-2");
  assert.equal(headers.get("errand-job-id"), "job_1");
});

test("without a body there is no content type, and the empty body is signed", () => {
  const headers = headersOf({ body: null });
  assert.equal(headers.has("content-type"), false);
  assert.equal(headers.get("webhook-signature"), signWebhook(SECRETS, "job_1", NOW_S, ""));
});

test("a GET never has a body", () => {
  const task = { method: "GET", url: "http://example.com", headers: {} } as const;
  const delivery = {
    jobId: "j",
    messageId: "j",
    attempt: 1,
    scheduleId: null,
    task,
    body: "piped",
    bodyHeaders: { "content-type": "text/plain" },
    secrets: SECRETS,
  };
  const request = buildRequest(delivery, NOW_S, "1");
  assert.equal(request.body, null);
  assert.equal(request.headers.includes("content-type"), false);
  assert.ok(request.headers.includes(signWebhook(SECRETS, "j", NOW_S, null)));
});

test("an empty payload is a body too", () => {
  assert.equal(headersOf({ body: "" }).get("content-type"), "application/json");
});

test("the job's own content type and user agent stand, in any case", () => {
  const headers = headersOf({
    task: { headers: { "Content-TYPE": "text/csv", "USER-agent": "mine", "x-a": "b" } },
    bodyHeaders: { "content-type": "image/png" },
  });
  assert.equal(headers.get("content-type"), "text/csv");
  assert.equal(headers.get("user-agent"), "mine");
  assert.equal(headers.get("x-a"), "b");
});

test("a piped body keeps its content type", () => {
  assert.equal(
    headersOf({ bodyHeaders: { "content-type": "image/png" }, body: new Uint8Array([1]) }).get(
      "content-type",
    ),
    "image/png",
  );
});

test("headers that are Errand's alone cannot be taken over", () => {
  const own = {
    "Webhook-Id": "x",
    "ERRAND-attempt": "9",
    "webhook-signature": "v1,x",
    expect: "100-continue",
  };
  const headers = headersOf({ task: { headers: own } });
  assert.equal(headers.get("webhook-id"), "job_1");
  assert.equal(headers.get("errand-attempt"), "2");
  assert.equal(headers.has("expect"), false);
});
