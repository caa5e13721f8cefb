/** Bodies that no honest client sends: refused with a documented error, or kept exactly as they came. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, describe, test } from "node:test";
import { type Answer, startTestApp, TEST_KEY, type TestApp } from "../support/app.ts";
import { rawRequest } from "../support/raw-request.ts";
import { startTarget } from "../support/target.ts";

const URL_FIELDS = `"url":"http://127.0.0.1:9/","delay":"1h"`;
const AUTH = `Authorization: Bearer ${TEST_KEY}\r\n`;
const JSON_HEAD = `POST /v1/jobs HTTP/1.1\r\nHost: a\r\n${AUTH}Content-Type: application/json\r\n`;

describe("hostile bodies", () => {
  let app: TestApp;
  before(async () => {
    app = await startTestApp({ config: { rateLimit: 0 } });
  });
  after(() => app.stop());

  const create = (members: string) => app.call("POST", "/v1/jobs", `{${members}}`);
  const pointers = ({ body }: Answer<any>) =>
    body.errors.map(({ pointer }: { pointer: string }) => pointer).toSorted();

  test("10,000 levels, as arrays and as objects, inside a payload, beside it and as the whole body", async () => {
    const arrays = "[".repeat(10_000) + "]".repeat(10_000);
    const objects = `${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`;
    for (const deep of [arrays, objects]) {
      for (const body of [
        deep,
        `{${URL_FIELDS},"payload":${deep}}`,
        `{${URL_FIELDS},"tags":${deep}}`,
        `{"steps":[{"url":"http://127.0.0.1:9/","payload":${deep}}]}`,
      ]) {
        const answer = await app.call("POST", "/v1/jobs", body);
        assert.equal(answer.status, 400, body.slice(0, 60));
        assert.match(answer.body["detail"], /deeper than 64 levels/);
      }
    }
    // Never closed: as deep as a body can be.
    assert.equal((await app.call("POST", "/v1/jobs", "[".repeat(1_000_000))).status, 400);
  });

  test("keys that mean something to JavaScript are unknown fields like any other, wherever they stand", async () => {
    const inherited = Object.getOwnPropertyNames(Object.prototype);
    for (const name of [...inherited, "prototype"]) {
      const member = `"${name}":{"queue":"taken"}`;
      assert.deepEqual(pointers(await create(`${URL_FIELDS},${member}`)), [`/${name}`]);
      const step = await create(`"steps":[{"url":"http://127.0.0.1:9/",${member}}]`);
      assert.deepEqual(pointers(step), [`/steps/0/${name}`]);
      const inBatch = await app.call("POST", "/v1/jobs/batch", `{"jobs":[{${URL_FIELDS},${member}}]}`);
      assert.deepEqual(pointers(inBatch), [`/jobs/0/${name}`]);
      const limit = `{"rate_limit":{"limit":1,"period":"1s",${member}}}`;
      assert.deepEqual(pointers(await app.call("PUT", "/v1/queues/q", limit)), [`/rate_limit/${name}`]);
      assert.deepEqual(pointers(await app.call("GET", `/v1/jobs?${name}=1`)), [`/${name}`]);
      // Header names do not have to be known; a wrong value is told all the same.
      const header = await create(`${URL_FIELDS},"headers":{"${name}":"a\\r\\nb"}`);
      assert.deepEqual(pointers(header), [`/headers/${name}`]);
    }
    const escaped = await create(`${URL_FIELDS},"\\u005f_proto__":1`);
    assert.deepEqual(pointers(escaped), ["/__proto__"]);
  });

  test("no header is lost without a word", async () => {
    for (const name of ["__proto__", "constructor", "prototype"]) {
      const answer = await create(`${URL_FIELDS},"headers":{"${name}":"x","x-a":"b"}`);
      assert.equal(answer.status, 422, name);
      assert.deepEqual(pointers(answer), [`/headers/${name}`]);
    }
    const target = await startTarget();
    const { id } = await app.createJob({ url: target.url, headers: { toString: "1", valueOf: "2" } });
    await app.ended(id);
    assert.equal(target.received[0]?.headers["tostring"], "1");
    assert.equal(target.received[0]?.headers["valueof"], "2");
    await target.close();
  });

  test("headers that are an array are refused, also in a change of a schedule", async () => {
    const schedule = await app.call("POST", "/v1/schedules", {
      cron_expr: "0 0 1 1 *",
      url: "http://127.0.0.1:9/",
      headers: { "x-a": "b" },
    });
    for (const headers of [[], ["x"], "x", null])
      assert.equal(
        (await app.call("PATCH", `/v1/schedules/${schedule.body["id"]}`, { headers })).status,
        422,
      );
    for (const headers of [[], ["x"]])
      assert.deepEqual(
        pointers(await app.call("POST", "/v1/jobs", { url: "http://127.0.0.1:9/", headers })),
        ["/headers"],
      );
  });

  test("numbers beyond every number: refused in a field, kept in a payload", async () => {
    for (const number of ["1e999", "-1e999", "9".repeat(400), "1e-999", "-0", "1e400"])
      assert.deepEqual(pointers(await create(`${URL_FIELDS},"max_attempts":${number}`)), ["/max_attempts"]);
    const payload = "[1e999,-1e999,-0,1E+2,123456789012345678901234567890]";
    assert.ok((await create(`${URL_FIELDS},"payload":${payload}`)).text.includes(`"payload":${payload}`));
  });

  test("half a surrogate pair: refused in every text that is kept, left alone in a payload", async () => {
    const half = "\\ud800";
    for (const member of [
      `"tags":["${half}"]`,
      `"dedupe_key":"${half}"`,
      `"url":"http://127.0.0.1:9/${half}"`,
      `"callback_url":"http://127.0.0.1:9/?\\udfff"`,
      `"queue":"${half}"`,
      `"headers":{"x-a":"${half}"}`,
      `"headers":{"${half}":"a"}`,
      `"delay":"${half}"`,
      `"method":"${half}"`,
      `"${half}":1`,
    ])
      assert.equal((await create(`"max_attempts":3,${member}`)).status, 422, member);
    const step = await create(`"steps":[{"url":"http://127.0.0.1:9/","name":"${half}"}]`);
    assert.deepEqual(pointers(step), ["/steps/0/name"]);
    const kept = await create(`${URL_FIELDS},"payload":{"${half}":"\\udc00${half}"}`);
    assert.ok(kept.text.includes(`"payload":{"${half}":"\\udc00${half}"}`), kept.text);
  });

  test("a key twice, also where one of the two is escaped; a payload may have it", async () => {
    for (const members of [
      `${URL_FIELDS},"url":"http://127.0.0.1:9/"`,
      `${URL_FIELDS},"\\u0075rl":"http://127.0.0.1:9/"`,
      `${URL_FIELDS},"headers":{"a":"1","a":"2"}`,
      `${URL_FIELDS},"__proto__":1,"__proto__":2`,
      `"steps":[{"url":"http://127.0.0.1:9/","url":"x"}]`,
    ]) {
      const answer = await create(members);
      assert.equal(answer.status, 400, members);
      assert.match(answer.body["detail"], /appears twice/);
    }
    assert.ok((await create(`${URL_FIELDS},"payload":{"a":1,"a":2}`)).text.includes(`{"a":1,"a":2}`));
  });

  test("bytes that are no text: not UTF-8, a byte order mark, NUL", async () => {
    const send = async (payload: Buffer) => {
      const body = Buffer.concat([Buffer.from(`{${URL_FIELDS},"payload":"`), payload, Buffer.from(`"}`)]);
      const response = await fetch(`${app.url}/v1/jobs`, {
        method: "POST",
        headers: { authorization: `Bearer ${app.key}`, "content-type": "application/json" },
        body,
      });
      return response.status;
    };
    // A lone continuation, an overlong slash, half a pair, beyond Unicode, cut off, NUL, a line feed.
    for (const bytes of [
      [0x80],
      [0xc0, 0xaf],
      [0xed, 0xa0, 0x80],
      [0xf5, 0x80, 0x80, 0x80],
      [0xe2, 0x82],
      [0],
      [10],
    ])
      assert.equal(await send(Buffer.from(bytes)), 400, String(bytes));
    assert.equal(await send(Buffer.from("€")), 201);
    assert.equal((await app.call("POST", "/v1/jobs", `\ufeff{${URL_FIELDS}}`)).status, 400);
    assert.equal((await app.call("POST", "/v1/jobs", `{${URL_FIELDS}}\0`)).status, 400);
    assert.equal((await create(`${URL_FIELDS},"tags":["\\u0000"]`)).status, 422);
    assert.ok((await create(`${URL_FIELDS},"payload":"\\u0000"`)).text.includes(`"payload":"\\u0000"`));
  });

  test("a long key above tens of thousands of wrong references is not repeated for each of them", async () => {
    const wrong = Array.from({ length: 4_000 }, () => `{"$from":"nope"}`).join();
    const step = `{"url":"http://127.0.0.1:9/","payload":{"${"k".repeat(50_000)}":[${wrong}]}}`;
    const { status, text, body } = await create(`"steps":[${step}]`);
    assert.equal(status, 422);
    assert.ok(text.length < 1_000_000, `${text.length}`);
    assert.match(body["errors"][0].pointer, /^\/steps\/0\/payload\/k+\/0\/\$from$/);
    assert.match(body["errors"].at(-1).detail, /; there may be more, which are not told$/);
  });

  test("hundreds of thousands of faults are answered with the first", async () => {
    const many = (item: string, bytes = 900_000) =>
      Array.from({ length: Math.floor(bytes / (item.length + 1)) }, () => item).join(",");
    const names = Array.from({ length: 60_000 }, (_, i) => `"k${i}":1`).join(",");
    for (const body of [
      `{"jobs":[${many("1")}]}`,
      `{"jobs":[${many(`{"steps":[${many("1", 40)}]}`)}]}`,
      `{"jobs":[${many(`{"steps":[{"name":"a"},{"name":"a"}]}`)}]}`,
    ]) {
      const answer = await app.call("POST", "/v1/jobs/batch", body);
      assert.equal(answer.status, 422);
      assert.equal(answer.body["errors"].length, 1);
      assert.ok(answer.text.length < 2_000);
    }
    for (const members of [
      `"steps":[${many("1")}]`,
      `"steps":[${many(`{"name":"a"}`)}]`,
      `"tags":[${many(`""`)}]`,
      `"no_retry_on":[${many("1")}]`,
    ]) {
      const answer = await create(`${URL_FIELDS},${members}`);
      assert.equal(answer.status, 422, answer.text.slice(0, 200));
      assert.equal(answer.body["errors"].length, 1);
    }
    for (const members of [`"headers":{${names}}`, names]) {
      const answer = await create(`${URL_FIELDS},${members}`);
      assert.equal(answer.status, 400);
      assert.match(answer.body["detail"], /more than 1000 members/);
    }
  });

  test("of a list that is too long only that is told: its items are not looked at", async () => {
    const jobs = Array.from({ length: 1_001 }, () => ({ url: "http://127.0.0.1:9/", nope: 1 }));
    const batch = await app.call("POST", "/v1/jobs/batch", { jobs });
    assert.deepEqual(pointers(batch), ["/jobs"]);
    assert.match(batch.body["detail"], /has to hold 1 to 1,000 jobs/);
    const lists = `"tags":[${`"",`.repeat(10)}""],"no_retry_on":[${"1,".repeat(100)}1],"retry_delays":[${"1,".repeat(20)}1]`;
    assert.deepEqual(pointers(await create(`${URL_FIELDS},${lists}`)), [
      "/no_retry_on",
      "/retry_delays",
      "/tags",
    ]);
    const steps = `"steps":[${"{},".repeat(20)}{}]`;
    assert.deepEqual(pointers(await create(steps)), ["/steps"]);
  });

  test("a length that is too short: what follows is another request, and gets nothing by it", async () => {
    const body = `{${URL_FIELDS}}`;
    const smuggled = `PATCH /v1/jobs HTTP/1.1\r\nHost: a\r\n\r\n`;
    const answer = await rawRequest(app.port, `${JSON_HEAD}Content-Length: 10\r\n\r\n${body}`);
    assert.equal(answer.status, 400);
    const pair = `${JSON_HEAD}Content-Length: ${body.length}\r\n\r\n${body}${smuggled}`;
    const answers = await allAnswers(app.port, pair, 2);
    assert.deepEqual(answers, [201, 405]);
  });

  test("a length that is too long: nothing is created when the client goes away before its end", async () => {
    const counts = async () => (await app.call("GET", "/v1/queues/lying")).body["counts"]?.pending ?? 0;
    const body = `{${URL_FIELDS},"queue":"lying"}`;
    const answers = await allAnswers(
      app.port,
      `${JSON_HEAD}Content-Length: ${body.length + 5}\r\n\r\n${body}`,
    );
    assert.ok(
      answers.every((status) => status === 400),
      String(answers),
    );
    assert.equal(await counts(), 0);
  });

  test("lengths that are none, and framings that contradict each other", async () => {
    for (const framing of [
      "Content-Length: -1",
      "Content-Length: +2",
      "Content-Length: 0x2",
      "Content-Length: 2, 2",
      "Content-Length: 2\r\nContent-Length: 2",
      "Content-Length: 2\r\nTransfer-Encoding: chunked",
      "Transfer-Encoding: chunked\r\nContent-Length: 2",
      "Transfer-Encoding: gzip",
      "Transfer-Encoding: chunked, chunked",
      "Transfer-Encoding: xchunked",
      "Transfer-Encoding : chunked",
    ]) {
      const answer = await rawRequest(app.port, `${JSON_HEAD}${framing}\r\n\r\n{}`);
      assert.ok(answer.status >= 400 && answer.status < 500, `${framing} → ${answer.status}`);
      assert.ok(answer.headers.get("x-request-id"), framing);
    }
  });
});

/** The statuses of the answers to these bytes; the client goes away when it has `wanted`, or at once for none. */
function allAnswers(port: number, bytes: string, wanted = 0): Promise<number[]> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    let received = "";
    const statuses = () => [...received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
    socket.setEncoding("latin1");
    socket.on("data", (chunk: string) => {
      received += chunk;
      if (wanted > 0 && statuses().length >= wanted) socket.end();
    });
    socket.on("error", reject);
    socket.on("close", () => resolve(statuses()));
    if (wanted > 0) socket.write(bytes);
    else socket.end(bytes);
  });
}
