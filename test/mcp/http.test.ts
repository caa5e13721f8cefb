/** /mcp as HTTP: who may call, what is no message, and what browsers are kept from. */
import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, describe, test } from "node:test";
import { startTestApp, type TestApp } from "../support/app.ts";
import { addKey } from "../support/keys.ts";
import { CURRENT, codeOf, connectMcp, dataOf, textOf } from "../support/mcp.ts";
import { startTarget } from "../support/target.ts";

const ACCEPT = { accept: "application/json, text/event-stream" };

let app: TestApp;
before(async () => {
  app = await startTestApp({ config: { allowedHosts: ["errand.example", "proxy.example:8443"] } });
});
after(() => app.stop());

const post = (body: unknown, headers: Record<string, string> = {}) =>
  app.call("POST", "/mcp", body, { ...ACCEPT, ...headers });

/** The JSON-RPC answers in a body, which is JSON or, for earlier protocol versions, an event stream. */
function messages(text: string): any[] {
  if (text.startsWith("{")) return [JSON.parse(text)];
  return [...text.matchAll(/^data: (.*)$/gm)].map((match) => JSON.parse(match[1] ?? ""));
}

const call = (name: string, input: unknown) =>
  ({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: input } }) as const;

describe("keys", () => {
  test("no key, a malformed and an unknown one are 401, and the answer says how to authenticate", async () => {
    for (const authorization of [
      "",
      "Basic abc",
      "Bearer nonsense",
      "Bearer errand_test_00000000000000000000000000",
    ]) {
      const answer = await post(call("list_jobs", {}), { authorization });
      assert.equal(answer.status, 401);
      assert.equal(answer.body["code"], "unauthorized");
      assert.match(answer.headers.get("www-authenticate") ?? "", /^Bearer/);
    }
    assert.equal((await app.call("GET", "/mcp", undefined, { authorization: "" })).status, 401);
  });

  test("a key does what its scopes allow, and no more", async () => {
    const key = await addKey(app, ["write"]);
    const client = await connectMcp({ url: app.url, key }, { by: "http", version: CURRENT });
    const made = await client.callTool({
      name: "create_job",
      arguments: { url: "http://127.0.0.1:9/", requires_approval: true },
    });
    const { id, actions } = dataOf(made);
    assert.deepEqual(actions, ["cancel"]);
    for (const [name, scope] of [
      ["approve_job", "approve"],
      ["reject_job", "approve"],
      ["get_job", "read"],
    ] as const) {
      const refused = await client.callTool({ name, arguments: { id } });
      assert.equal(codeOf(refused), "forbidden");
      assert.match(textOf(refused), new RegExp(`scope ${scope}`));
    }
    assert.equal((await app.call("GET", `/v1/jobs/${id}`)).body["status"], "awaiting_approval");
    await client.close();
  });

  test("every message counts against the rate limit", async (t) => {
    const limited = await startTestApp({ config: { rateLimit: 1 } });
    t.after(() => limited.stop());
    const ping = { jsonrpc: "2.0", id: 1, method: "ping" };
    const answer = await limited.call("POST", "/mcp", [ping, ping, ping], ACCEPT);
    assert.equal(answer.status, 429);
    assert.equal(answer.body["code"], "rate_limited");
    assert.ok(answer.headers.get("retry-after"));
  });
});

describe("messages", () => {
  test("GET and DELETE are 405 with Allow", async () => {
    for (const method of ["GET", "DELETE", "PUT"]) {
      const { status, headers } = await app.call(method, "/mcp");
      assert.equal(status, 405);
      assert.equal(headers.get("allow"), "POST");
    }
  });

  test("a body that is not JSON is a parse error, one over the limit 413, another type 415", async () => {
    const broken = await post("{nope");
    assert.equal(broken.status, 400);
    assert.equal(broken.body["error"].code, -32_700);
    assert.equal(broken.body["id"], null);
    assert.equal((await post(call("create_job", { payload: "x".repeat(1 << 20) }))).status, 413);
    assert.equal((await post("{}", { "content-type": "text/plain" })).status, 415);
  });

  test("an unknown tool and an unknown method are protocol errors", async () => {
    assert.equal(messages((await post(call("nope", {}))).text)[0].error.code, -32_602);
    const unknown = await post({ jsonrpc: "2.0", id: 1, method: "resources/list" });
    assert.equal(messages(unknown.text)[0].error.code, -32_601);
  });

  test("several messages in one request, as protocol version 2025-03-26 has them", async () => {
    const { text } = await post([
      { ...call("create_job", { url: "http://127.0.0.1:9/", delay: "1h", payload: 1 }), id: "a" },
      { ...call("list_jobs", { limit: 1 }), id: "b" },
    ]);
    assert.deepEqual(new Set(messages(text).map(({ id }) => id)), new Set(["a", "b"]));
  });

  test("a payload keeps its bytes, and numbers in answers their digits", async () => {
    const payload = `{"b":1.0,"a":9007199254740993,"t":"\\u00e9"}`;
    const made = await post(
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_job","arguments":{"url":"http://127.0.0.1:9/","delay":"1h","payload":${payload}}}}`,
    );
    const { structuredContent } = messages(made.text)[0].result;
    assert.match(made.text, /"structuredContent":.*"a":9007199254740993/);
    const job = await app.call("GET", `/v1/jobs/${structuredContent.id}`);
    assert.ok(job.text.includes(`"payload":${payload}`));
  });
});

test("a job whose target answered with very deep JSON can be read: its response stands there as text", async (t) => {
  const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
  const flat = `{"n":1.0,"big":9007199254740993}`;
  const target = await startTarget((_, count) => ({ body: count === 1 ? flat : deep }));
  t.after(() => target.close());
  const { id } = await app.createJob({ steps: [{ url: target.url }, { url: target.url }] });
  assert.equal((await app.call("GET", `/v1/jobs/${id}?wait=30s`)).status, 200);
  for (const [name, input] of [
    ["get_job", { id }],
    ["wait_for_job", { id }],
    ["get_job_attempts", { id }],
  ] as const) {
    const [answer] = messages((await post(call(name, input))).text);
    const result = dataOf(answer.result);
    const bodies = (result["data"] ?? result["steps"]).map((one: any) => one["response_body"]);
    assert.deepEqual(bodies, [JSON.parse(flat), deep], name);
    assert.ok(textOf(answer.result).includes(`"response_body":${deep}`), "the text keeps the bytes");
  }
});

test("a response stands in the structured result as the target wrote it, on one line", async (t) => {
  const laidOut = `{\r\n  "n": 1.0,\n  "twice": 1, "twice": 2,\r  "text": "a\\nb"\n}`;
  const target = await startTarget(() => ({ body: laidOut }));
  t.after(() => target.close());
  const { id } = await app.createJob({ url: target.url });
  assert.equal((await app.call("GET", `/v1/jobs/${id}?wait=30s`)).status, 200);
  const { text } = await post(call("get_job", { id }));
  assert.ok(text.includes(`"response_body":${laidOut.replaceAll(/[\r\n]+/g, " ")}`), text);
  const { response_body } = dataOf(messages(text)[0].result);
  assert.deepEqual(response_body, { n: 1, twice: 2, text: "a\nb" });
});

test("answers of over 16 MiB together are not given to one request: what does not fit is asked for by itself", async (t) => {
  const target = await startTarget(() => ({ status: 500, body: `"${"x".repeat((1 << 20) - 2)}"` }));
  t.after(() => target.close());
  const { id } = await app.createJob({ url: target.url, max_attempts: 7, retry_delays: ["0s"] });
  assert.equal((await app.call("GET", `/v1/jobs/${id}?wait=30s`)).body["attempts"], 7);
  const ask = (n: number) => ({ ...call("get_job_attempts", { id }), id: n });
  const { text } = await post([ask(1), ask(2), ask(3), ask(4)]);
  const codes = messages(text).map(({ result }) => codeOf(result));
  assert.deepEqual(
    Object.entries(Object.groupBy(codes, String)).map(([code, those]) => [code, those?.length]),
    [
      ["null", 2],
      ["payload_too_large", 2],
    ],
  );
  assert.equal(codeOf(messages((await post(ask(5))).text)[0].result), null);
});

test("what was done is told to be done, also where its answer does not fit into those of one request", async (t) => {
  const target = await startTarget(() => ({ status: 500, body: "x".repeat(1 << 20) }));
  t.after(() => target.close());
  const jobs = Array.from({ length: 17 }, () =>
    app.createJob({ url: target.url, max_attempts: 1, queue: "q" }),
  );
  const ids = (await Promise.all(jobs)).map(({ id }) => String(id));
  for (const id of ids)
    assert.equal((await app.call("GET", `/v1/jobs/${id}?wait=30s`)).body["status"], "failed");
  await app.call("POST", "/v1/queues/q/pause");
  const { text } = await post(ids.map((id, i) => ({ ...call("retry_job", { id }), id: i })));
  const refused = messages(text).flatMap(({ result }) => (result.isError === true ? [textOf(result)] : []));
  assert.equal(refused.length, 2);
  for (const word of refused) assert.match(word, /^payload_too_large: .* is done, so do not send it again/);
  const { body } = await app.call("GET", "/v1/jobs?queue=q&status=pending");
  assert.equal(body["data"].length, 17);
});

describe("errors and repeats", () => {
  test("an error names each wrong argument and what would be right", async () => {
    const { text } = await post(call("create_job", { url: "ftp://x/", max_attempts: 0, nope: 1 }));
    const { result } = messages(text)[0];
    assert.equal(codeOf(result), "invalid_request");
    assert.match(textOf(result), /^- \/url has to begin with http/m);
    assert.match(textOf(result), /^- \/max_attempts has to be a whole number from 1 to 100/m);
    assert.match(textOf(result), /^- \/nope is not a field of this request/m);
    assert.match(textOf(result), /^request_id: req_/m);
  });

  test("idempotency_key makes a repeat the first answer again, also one by REST", async () => {
    const fields = { url: "http://127.0.0.1:9/", delay: "1h", payload: 1 };
    const create = async (more: object) =>
      messages((await post(call("create_job", { ...fields, ...more }))).text)[0].result;
    const first = dataOf(await create({ idempotency_key: "k1" }));
    assert.deepEqual(dataOf(await create({ idempotency_key: "k1" })), first);
    const byRest = await app.call("POST", "/v1/jobs", fields, { "idempotency-key": "k1" });
    assert.equal(byRest.headers.get("idempotency-replayed"), "true");
    assert.deepEqual(byRest.body, first);
    assert.equal(codeOf(await create({ idempotency_key: "k1", tags: ["other"] })), "idempotency_key_reused");
    for (const wrong of ["", "two words", 5, null]) {
      const refused = await create({ idempotency_key: wrong });
      assert.equal(codeOf(refused), "invalid_request");
      assert.match(textOf(refused), /^- \/idempotency_key has to have/m);
    }
    const refused = messages((await post(call("get_job", { id: first["id"], idempotency_key: "k" }))).text)[0]
      .result;
    assert.match(textOf(refused), /\/idempotency_key is not a field/);
  });
});

describe("Host and Origin", () => {
  /** fetch sets both headers itself. */
  const status = (
    headers: Record<string, string>,
    path = "/mcp",
  ): Promise<[number | undefined, string | undefined]> =>
    new Promise((resolve, reject) => {
      const outgoing = request(
        new URL(path, app.url),
        {
          method: "POST",
          headers: {
            ...ACCEPT,
            authorization: `Bearer ${app.key}`,
            "content-type": "application/json",
            ...headers,
          },
        },
        (answer) => {
          let text = "";
          answer.on("data", (chunk: Buffer) => (text += chunk.toString()));
          answer.on("end", () => resolve([answer.statusCode, /"code":"(\w+)"/.exec(text)?.[1]]));
        },
      );
      outgoing.on("error", reject);
      outgoing.end(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }));
    });

  for (const host of [
    "localhost",
    "LOCALHOST:3000",
    "errand.localhost:1",
    "127.0.0.1:3000",
    "192.168.1.5:3000",
    "[::1]:3000",
    "errand.example",
    "ERRAND.example:8080",
    "proxy.example:8443",
  ])
    test(`Host ${host} is answered`, async () => assert.deepEqual(await status({ host }), [200, undefined]));

  for (const host of [
    "evil.example",
    "localhost.evil.example",
    "errand.example.evil.example",
    "notlocalhost",
    "proxy.example",
    "127.0.0.1.evil.example",
  ])
    test(`Host ${host} is refused`, async () =>
      assert.deepEqual(await status({ host }), [403, "forbidden_host"]));

  for (const origin of [
    "http://localhost:6274",
    "http://127.0.0.1:5173",
    "http://127.0.0.2:5173",
    "https://errand.example",
    "http://[::1]:1",
  ])
    test(`Origin ${origin} is answered`, async () =>
      assert.deepEqual(await status({ origin }), [200, undefined]));

  for (const origin of [
    "https://evil.example",
    "null",
    "http://203.0.113.7",
    "file://",
    "https://localhost.evil.example",
    "chrome-extension://abc",
    "https://localhost@evil.example",
    "https://evil.example@localhost",
    "https://localhost/evil.example",
    "http://",
  ])
    test(`Origin ${origin} is refused`, async () =>
      assert.deepEqual(await status({ origin }), [403, "forbidden_origin"]));

  test("an Origin that is the Host's own is answered", async () =>
    assert.deepEqual(await status({ host: "192.168.1.5:3000", origin: "http://192.168.1.5:3000" }), [
      200,
      undefined,
    ]));

  test("a call of the REST API is not refused for its Host", async () =>
    assert.deepEqual(await status({ host: "evil.example" }, "/v1/jobs"), [422, "invalid_request"]));
});
