/** No operation shows or changes anything of another account or mode, or without the right key: by the list itself. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { OPERATIONS } from "../../src/operations/index.ts";
import { type Operation, pathNames } from "../../src/operations/operation.ts";
import { addAccount } from "../support/accounts.ts";
import { type Answer, startTestApp, type TestApp } from "../support/app.ts";

const SCOPES = ["read", "write", "approve", "admin"] as const;
const SECRET_WORD = "owned-by-the-first-account";

describe("isolation, operation by operation", () => {
  let app: TestApp;
  /** Keys of others, each with every scope. */
  const others = { mode: "", account: "" };
  let revoked = "";
  const without = new Map<string, string>();
  /** What the first account owns, by the path that leads to it. */
  const owned = new Map<string, string>();
  /** Texts that nobody else may read. */
  const markers: string[] = [];
  let untouched = "";

  const as = (key: string) => ({ authorization: `Bearer ${key}` });

  before(async () => {
    app = await startTestApp({ config: { rateLimit: 0 } });
    const second = await addAccount(app.folder, "Second account");
    others.account = second.test;
    others.mode = second.live;
    for (const scope of SCOPES) {
      const scopes = SCOPES.filter((one) => one !== scope);
      without.set(scope, (await app.call("POST", "/v1/keys", { name: `no ${scope}`, scopes })).body.key);
    }
    const made = await app.call("POST", "/v1/keys", { name: "revoked", scopes: SCOPES });
    revoked = made.body["key"];
    assert.equal((await app.call("DELETE", `/v1/keys/${made.body["id"]}`)).status, 204);
  });
  after(() => app.stop());

  /** Everything of one kind that a key owns: a waiting job, a schedule, a queue, a key. */
  async function furnish(key: string): Promise<Map<string, string>> {
    const call = (method: string, path: string, body: unknown) => app.call(method, path, body, as(key));
    const url = "http://127.0.0.1:9/";
    const job = await call("POST", "/v1/jobs", {
      url: `${url}${SECRET_WORD}`,
      requires_approval: true,
      tags: [SECRET_WORD],
      queue: SECRET_WORD,
      payload: SECRET_WORD,
    });
    const schedule = await call("POST", "/v1/schedules", {
      url,
      cron_expr: "0 0 1 1 *",
      name: SECRET_WORD,
      payload: SECRET_WORD,
    });
    const made = await call("POST", "/v1/keys", { name: SECRET_WORD, scopes: ["read"] });
    return new Map([
      ["/v1/jobs/", job.body["id"]],
      ["/v1/schedules/by-name/", SECRET_WORD],
      ["/v1/schedules/", schedule.body["id"]],
      ["/v1/queues/", SECRET_WORD],
      ["/v1/keys/", made.body["id"]],
    ]);
  }

  /** All that a key can read. */
  async function everything(key: string): Promise<string> {
    const paths = [
      "/v1/jobs",
      "/v1/schedules",
      "/v1/queues",
      "/v1/keys",
      "/v1/signing-secrets",
      "/v1/usage",
      "/v1/account",
    ];
    const answers = await Promise.all(paths.map((path) => app.call("GET", path, undefined, as(key))));
    return answers
      .map(({ status, text }) => `${status} ${text}`)
      .join("\n")
      .replaceAll(/"oldest_due_age_ms":\d+/g, "");
  }

  function pathOf(operation: Operation): string {
    const prefix = [...owned.keys()].find((one) => operation.http.path.startsWith(`${one}{`));
    const value = prefix === undefined ? "x" : owned.get(prefix)!;
    return pathNames(operation).reduce((path, name) => path.replace(`{${name}}`, value), operation.http.path);
  }

  const mayRead = (key: string) => Object.values(others).includes(key);
  /** A stream that was let in does not end by itself. */
  const isStream = ({ name }: Operation, key: string) => name === "events.stream" && mayRead(key);

  /** A stream's answer without its events, which tests of their own look at. */
  async function opened(path: string, key: string): Promise<Answer<any>> {
    const { status, headers, body } = await fetch(app.url + path, { headers: as(key) });
    await body?.cancel();
    return { status, headers, text: "", body: null };
  }

  /** The request as its owner would make it. */
  function request(operation: Operation, key: string) {
    const { method } = operation.http;
    const hasBody = method !== "GET" && method !== "DELETE";
    const body = { ...operation.example };
    for (const name of pathNames(operation)) delete body[name];
    const path = pathOf(operation);
    return isStream(operation, key)
      ? opened(path, key)
      : app.call(method, path, hasBody ? body : undefined, as(key));
  }

  before(async () => {
    for (const [path, value] of await furnish(app.key)) owned.set(path, value);
    markers.push(SECRET_WORD, ...owned.values());
    untouched = await everything(app.key);
    const secrets = await app.call("GET", "/v1/signing-secrets");
    markers.push(secrets.body["data"][0].secret, (await app.call("GET", "/v1/account")).body["account"].id);
  });

  test("the same requests work for their owner", async () => {
    const seen = await everything(app.key);
    for (const marker of markers) assert.ok(seen.includes(marker), marker);
  });

  // What makes things under a name of the caller's choice comes last: for others, too, the name then exists.
  const isPut = ({ http }: Operation) => Number(http.method === "PUT");
  for (const operation of OPERATIONS.toSorted((a, b) => isPut(a) - isPut(b))) {
    describe(operation.name, () => {
      for (const [what, key] of [
        ["no key", () => ""],
        ["a malformed key", () => "errand_test_x"],
        ["an unknown key", () => `errand_test_${"0".repeat(36)}`],
        ["a revoked key", () => revoked],
      ] as const) {
        test(`${what}: 401`, async () => {
          const answer = await request(operation, key());
          assert.equal(answer.status, 401);
          assert.equal(answer.body["code"], "unauthorized");
        });
      }

      test(`without the scope ${operation.scope}: 403`, async () => {
        const answer = await request(operation, without.get(operation.scope)!);
        assert.equal(answer.status, 403);
        assert.equal(answer.body["code"], "forbidden");
      });

      for (const other of ["mode", "account"] as const) {
        test(`another ${other}: what is not theirs does not exist`, async () => {
          const answer = await request(operation, others[other]);
          // A PUT by name makes one of their own; any other path with a name or id in it leads nowhere.
          const leadsNowhere = pathNames(operation).length > 0 && operation.http.method !== "PUT";
          if (leadsNowhere) assert.equal(answer.status, 404, answer.text);
          else assert.ok(answer.status < 300, answer.text);
          const own =
            operation.http.method === "PUT" ? markers.filter((one) => one !== SECRET_WORD) : markers;
          const quoted = leadsNowhere
            ? answer.text.replaceAll(pathOf(operation).split("/")[3]!, "")
            : answer.text;
          for (const marker of own) assert.ok(!quoted.includes(marker), `${marker} in ${answer.text}`);
        });
      }

      test("nothing of its owner's has changed", async () => {
        assert.equal(await everything(app.key), untouched);
      });
    });
  }

  test("the other mode of the same account is another world, too", async () => {
    const second = await furnish(others.account);
    assert.ok((await everything(others.account)).includes(second.get("/v1/jobs/")!));
    const live = await everything(others.mode);
    for (const id of ["/v1/jobs/", "/v1/schedules/", "/v1/keys/"])
      assert.ok(!live.includes(second.get(id)!), id);
    assert.ok((await app.call("GET", "/v1/account", undefined, as(others.mode))).body["mode"] === "live");
  });

  test("an Idempotency-Key that another tenant has used is nothing known: what is not there is 404", async () => {
    const path = owned.get("/v1/schedules/")!;
    const trigger = (key: string) =>
      app.call("POST", `/v1/schedules/${path}/trigger`, {}, { ...as(key), "idempotency-key": "trigger" });
    assert.equal((await trigger(app.key)).status, 200);
    for (const key of [others.account, others.mode]) assert.equal((await trigger(key)).status, 404);
  });

  test("Idempotency-Key and dedupe_key are each tenant's own", async () => {
    const create = (key: string) =>
      app.call(
        "POST",
        "/v1/jobs",
        { url: "http://127.0.0.1:9/", delay: "1h", dedupe_key: "same" },
        { ...as(key), "idempotency-key": "same" },
      );
    const made = [await create(app.key), await create(others.account), await create(others.mode)];
    assert.deepEqual(
      made.map(({ status }) => status),
      [201, 201, 201],
    );
    assert.equal(new Set(made.map(({ body }) => body["id"])).size, 3);
    assert.deepEqual(
      made.map(({ body }) => body["mode"]),
      ["test", "test", "live"],
    );
  });
});
