/** Parity: the same calls through every door, each on a service of its own, get the same results and the same errors. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { OPERATIONS } from "../../src/operations/index.ts";
import { type Operation, pathNames } from "../../src/operations/operation.ts";
import { startTestApp, type TestApp } from "../support/app.ts";
import { cliOf } from "../support/cli.ts";
import { CURRENT, codeOf, connectMcp } from "../support/mcp.ts";
import { startTarget, type Target } from "../support/target.ts";
import { type Call, calls } from "./surface-calls.ts";

type Result = { readonly data: unknown } | { readonly code: string };

/** One way to call an operation. */
interface Door {
  readonly name: string;
  readonly offers: (operation: Operation) => boolean;
  readonly call: (operation: Operation, input: Record<string, unknown>) => Promise<Result>;
  readonly close: () => Promise<void>;
}

function rest(app: TestApp): Door {
  return {
    name: "REST",
    offers: () => true,
    async call(operation, input) {
      const { method } = operation.http;
      const { path, fields } = requestOf(operation, input);
      const { status, body } =
        method === "GET" || method === "DELETE"
          ? await app.call(method, `${path}?${queryOf(fields)}`)
          : await app.call(method, path, fields);
      return status >= 400 ? { code: body["code"] } : { data: body };
    },
    close: () => app.stop(),
  };
}

async function mcp(app: TestApp, by: "http" | "stdio"): Promise<Door> {
  const client = await connectMcp(app, { by, version: CURRENT });
  // Once it has the list, the client checks structured content against the output schemas.
  await client.listTools();
  return {
    name: `MCP over ${by}`,
    offers: (operation) => operation.mcp !== null,
    async call(operation, input) {
      const result = await client.callTool({ name: operation.mcp ?? "", arguments: input });
      const code = codeOf(result);
      if (code !== null) return { code };
      // REST says 204 where a tool, which has to have a structured result, says that there is nothing in it.
      if (operation.output === null) assert.deepEqual(result.structuredContent, {});
      return { data: operation.output === null ? null : result.structuredContent };
    },
    async close() {
      await client.close();
      await app.stop();
    },
  };
}

function cli(app: TestApp): Door {
  const errand = cliOf(app);
  return {
    name: "the command line",
    offers: (operation) => operation.cli !== null,
    async call(operation, input) {
      const { code, out, err } = await errand([...argumentsOf(operation, input), "-o", "json"]);
      const body = out === "" ? null : JSON.parse(out);
      if (code === 0) return { data: body };
      // What is no option, or no choice of one, is refused before the service is asked.
      return { code: body?.code ?? (code === 2 ? "invalid_request" : err) };
    },
    close: () => app.stop(),
  };
}

/** `{id, note}` → `jobs approve ID --note …`. */
function argumentsOf({ cli: command }: Operation, input: Record<string, unknown>): string[] {
  if (command === null) return [];
  const { positional = [] } = command;
  const options = Object.entries(input).filter(
    ([name, value]) => value !== undefined && !positional.includes(name),
  );
  return [
    ...command.command.split(" "),
    ...positional.map((name) => String(input[name])),
    ...options.flatMap(([name, value]) => optionOf(name, value)),
  ];
}

function optionOf(name: string, value: unknown): string[] {
  const flag = `--${name.replaceAll("_", "-")}`;
  if (typeof value === "boolean") return [value ? flag : flag.replace("--", "--no-")];
  if (name === "headers")
    return Object.entries(value as Record<string, string>).flatMap((pair) => ["--header", pair.join(":")]);
  if (Array.isArray(value) && value.every((one) => typeof one !== "object"))
    return value.flatMap((one) => [flag, String(one)]);
  return [flag, typeof value === "string" && name !== "payload" ? value : JSON.stringify(value)];
}

function requestOf(operation: Operation, input: Record<string, unknown>) {
  const fields = { ...input };
  let { path } = operation.http;
  for (const name of pathNames(operation)) {
    path = path.replace(`{${name}}`, encodeURIComponent(String(fields[name])));
    delete fields[name];
  }
  return { path, fields };
}

function queryOf(fields: Record<string, unknown>): string {
  const pairs = Object.entries(fields).flatMap(([name, value]) =>
    [value].flat().map((one): [string, string] => [name, String(one)]),
  );
  return new URLSearchParams(pairs).toString();
}

/** What differs from service to service: ids, times, and how long things took. */
function masked(result: Result): unknown {
  const text = JSON.stringify(result)
    .replaceAll(/\b(job|sch|key|acct|req|sec)_[0-9a-z]{26}\b/g, "$1_…")
    .replaceAll(/\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z/g, "(a time)")
    .replaceAll(/"(duration_ms|oldest_due_age_ms)":\d+/g, `"$1":0`)
    .replaceAll(/"date":"[^"]+"/g, `"date":"(a date)"`);
  return JSON.parse(text);
}

describe("the same call by REST, MCP and the command line", () => {
  let doors: Door[];
  let target: Target;
  before(async () => {
    target = await startTarget(() => ({ body: `{"ok":true}` }));
    doors = [
      rest(await startTestApp()),
      await mcp(await startTestApp(), "http"),
      await mcp(await startTestApp(), "stdio"),
      cli(await startTestApp()),
    ];
  });
  after(async () => {
    await Promise.all(doors.map((door) => door.close()));
    await target.close();
  });

  /** What each door's service has answered, by the names that calls give to their answers. */
  const kept = new Map<string, Record<string, any>>();

  async function through(door: Door, operation: Operation, call: Call): Promise<unknown> {
    const answer = (name: string) => kept.get(`${door.name} ${name}`) ?? {};
    const result = await door.call(operation, call.input({ url: target.url, answer }));
    if (call.keep !== undefined && "data" in result)
      kept.set(`${door.name} ${call.keep}`, result.data as Record<string, any>);
    return masked(result);
  }

  for (const call of calls) {
    test(`${call.operation}: ${call.what}`, async () => {
      const operation = OPERATIONS.find(({ name }) => name === call.operation);
      assert.ok(operation, `there is no operation ${call.operation}`);
      const offering = doors.filter((door) => door.offers(operation));
      const [expected, ...others] = await Promise.all(offering.map((door) => through(door, operation, call)));
      assert.equal((expected as { code?: string }).code, call.code, JSON.stringify(expected));
      others.forEach((result, i) =>
        assert.deepEqual(result, expected, `${offering[i + 1]?.name} differs from ${offering[0]?.name}`),
      );
    });
  }

  test("every operation with a tool is among the calls, done and refused", () => {
    for (const { name } of OPERATIONS.filter((operation) => operation.mcp !== null)) {
      const codes = calls.filter(({ operation }) => operation === name).map(({ code }) => code);
      assert.ok(codes.includes(undefined), `${name} is never done`);
      assert.ok(
        codes.some((code) => code !== undefined),
        `${name} is never refused`,
      );
    }
  });
});
