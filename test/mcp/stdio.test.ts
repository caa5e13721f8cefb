/** `errand mcp` as a process: one message a line, nothing else on stdout, and a service that may be away. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { startTestApp, type TestApp } from "../support/app.ts";
import { addKey } from "../support/keys.ts";
import { CURRENT, codeOf, connectMcp, type Service, stdioCommand, textOf } from "../support/mcp.ts";
import { startTarget } from "../support/target.ts";

let app: TestApp;
before(async () => {
  app = await startTestApp();
});
after(() => app.stop());

/** What the process answers to these lines, and its exit code once its input has ended. */
async function converse(service: Service, lines: readonly string[], answers: number) {
  const { command, args, env } = stdioCommand(service);
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "inherit"] });
  const gone = once(child, "exit");
  const said: any[] = [];
  child.stdin.write(`${lines.join("\n")}\n`);
  for await (const line of createInterface(child.stdout)) {
    said.push(JSON.parse(line));
    if (said.length === answers) child.stdin.end();
  }
  const [code] = (await gone) as [number | null];
  return { said, code };
}

const call = (id: number, name: string, input: string) =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${name}","arguments":${input}}}`;

describe("errand mcp", () => {
  test("a payload keeps its bytes, and numbers in answers their digits; the end of the input is the end", async () => {
    const payload = `{"b":1.0,"a":9007199254740993,"t":"\\u00e9 \u2028"}`;
    const lines = [call(1, "create_job", `{"url":"http://127.0.0.1:9/","delay":"1h","payload":${payload}}`)];
    const { said, code } = await converse(app, lines, 1);
    assert.equal(code, 0);
    const { id } = said[0].result.structuredContent;
    const { text } = await app.call("GET", `/v1/jobs/${id}`);
    assert.ok(text.includes(`"payload":${payload}`), text);
    assert.ok(said[0].result.content[0].text.includes(`"payload":${payload}`));
  });

  test("what was asked before the input ended is answered, a last line without a line end too", async () => {
    const { command, args, env } = stdioCommand(app);
    const child = spawn(command, args, {
      env: { ...process.env, ...env },
      stdio: ["pipe", "pipe", "inherit"],
    });
    const gone = once(child, "exit");
    const { id } = await app.createJob({ url: "http://127.0.0.1:9/", delay: "1h" });
    // The one that was cancelled is not waited for (MCP, cancellation: it gets no answer).
    const cancelled = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`;
    const lines = [
      call(1, "list_queues", "{}"),
      call(3, "wait_for_job", `{"id":"${id}"}`),
      cancelled,
      call(2, "list_jobs", "{}"),
    ];
    child.stdin.end(lines.join("\n"));
    const said = new Set<unknown>();
    for await (const line of createInterface(child.stdout)) said.add(JSON.parse(line).id);
    assert.deepEqual(said, new Set([1, 2]));
    assert.deepEqual(await gone, [0, null]);
  });

  test("a response that the target laid out over several lines stands on one", async (t) => {
    const target = await startTarget(() => ({ body: `{\r\n  "n": 1.0\n}` }));
    t.after(() => target.close());
    const { id } = await app.createJob({ url: target.url });
    await app.call("GET", `/v1/jobs/${id}?wait=30s`);
    const { said } = await converse(app, [call(1, "get_job", `{"id":"${id}"}`)], 1);
    assert.deepEqual(said[0].result.structuredContent.response_body, { n: 1 });
  });

  test("a line that is no message is told so, and the next one is answered", async () => {
    const { said } = await converse(app, ["{nope", `{"a":1}`, "", call(7, "list_jobs", "{}")], 3);
    assert.deepEqual(
      said.slice(0, 2).map(({ error }) => error.code),
      [-32_700, -32_600],
    );
    assert.equal(said[2].id, 7);
  });

  test("what a URL would lose is no id: it must not become the path of another operation", async () => {
    const { id } = await app.createJob({ url: "http://127.0.0.1:9/", delay: "1h" });
    const lines = [".", "..", "\\ud800"].map((name, i) => call(i, "cancel_job", `{"id":"${name}"}`));
    const { said } = await converse(app, lines, 3);
    for (const { result } of said) assert.equal(codeOf(result), "not_found");
    assert.equal((await app.call("GET", `/v1/jobs/${id}`)).body["status"], "pending");
  });

  test("it may do what its key may do", async (t) => {
    const key = await addKey(app, ["read"]);
    const client = await connectMcp({ url: app.url, key }, { by: "stdio", version: CURRENT });
    t.after(() => client.close());
    const refused = await client.callTool({ name: "create_job", arguments: { url: "http://127.0.0.1:9/" } });
    assert.equal(codeOf(refused), "forbidden");
    assert.match(textOf(refused), /scope write/);
  });

  test("a key that is not known and a service that is away are errors of the tool, in words", async () => {
    const stranger = { url: app.url, key: "errand_test_00000000000000000000000000" };
    const unknown = await converse(stranger, [call(1, "list_jobs", "{}")], 1);
    assert.equal(codeOf(unknown.said[0].result), "unauthorized");
    const away = await converse({ url: "http://127.0.0.1:9", key: app.key }, [call(1, "list_jobs", "{}")], 1);
    assert.equal(codeOf(away.said[0].result), "unavailable");
    assert.match(textOf(away.said[0].result), /127\.0\.0\.1:9 cannot be reached/);
  });
});
