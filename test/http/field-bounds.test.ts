/** Every field of every request at its bounds, and one beyond. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startTestApp, type TestApp } from "../support/app.ts";

const url = "http://127.0.0.1:9/hook";
const text = (length: number) => "x".repeat(length);
const longUrl = (length: number) => url + text(length - url.length);
const many = <T>(length: number, make: (i: number) => T) => Array.from({ length }, (_, i) => make(i));
const headers = (count: number) => Object.fromEntries(many(count, (i) => [`x-${i}`, "v"]));

/** What each field takes and what it does not, in `frame`. */
type Row = readonly [field: string, takes: readonly unknown[], refuses: readonly unknown[]];

const WRONG_DURATIONS = ["", "5", "5 s", "1w", "-1s", "1.5h", "s", "1S", 5, null];
const LAST_TIME = "9999-12-31T23:59:59.999+00:00";
const WRONG_TIMES = [
  "",
  "now",
  "2026-02-30T00:00:00Z",
  "2026-01-01",
  "2026-01-01T00:00:00",
  "2026-13-01T00:00:00Z",
  "2026-01-01T24:00:00Z",
  "2026-01-01T12:00:00+24:00",
  // In UTC these are of the years 10000 and -1.
  "9999-12-31T23:59:59-12:00",
  "0000-01-01T00:00:00+12:00",
  1,
];

const RULES: readonly Row[] = [
  ["max_attempts", [1, 100], [0, 101, 1.5, -1, "3", null, true]],
  ["timeout", ["1s", "15m", "900s"], ["0s", "901s", "16m", ...WRONG_DURATIONS]],
  ["retry_delays", [["0s"], many(20, () => "365d")], [[], many(21, () => "1s"), ["366d"], "1s", [1], null]],
  [
    "no_retry_on",
    [[], [404, "4xx"], [300, 599], ["5xx", "3xx"]],
    [["6xx"], ["44x"], [99], [600], ["404"], 404, null],
  ],
];

const WORK: readonly Row[] = [
  [
    "url",
    [longUrl(2_048), "https://a.test/", "http://[::1]:9/"],
    [longUrl(2_049), "", "/x", "http:/x", "http://u:p@a/", "ftp://a/", "http://a b/", 1, null],
  ],
  ["payload", [null, 0, "", [], {}, { $from: "x" }], []],
  ["method", ["GET", "POST", "PUT", "PATCH", "DELETE"], ["get", "HEAD", "OPTIONS", "", 1, null]],
  [
    "headers",
    [{}, headers(50), { "x-a": "" }, { "x-a": text(8_192) }, { "X-Mixed": "Ü" }],
    [
      headers(51),
      { "x-a": text(8_193) },
      { "x-a": "a\r\nb" },
      { "x-a": "a\nb" },
      { "x-a": "a\0" },
      { "x-a": "日" },
      { "": "a" },
      { "x a": "b" },
      { "x-a": 1 },
      { "x-a": "1", "X-A": "2" },
      ...[
        "host",
        "Host",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "te",
        "trailer",
        "upgrade",
        "proxy-authorization",
        "webhook-id",
        "Webhook-Anything",
        "errand-job-id",
      ].map((name) => ({ [name]: "x" })),
      [],
      "x",
      null,
    ],
  ],
  ...RULES,
  ["queue", ["a", text(64), "A-z_0"], ["", text(65), "a b", "a.b", "ü", 1, null]],
  [
    "tags",
    [[], many(10, String), [text(64)]],
    [many(11, String), [""], [text(65)], ["a", "a"], [1], "a", null],
  ],
  ["requires_approval", [true, false], ["true", 1, null]],
  ["approval_timeout", ["1s", "365d"], ["0s", "366d", ...WRONG_DURATIONS]],
  ["callback_url", [longUrl(2_048)], [longUrl(2_049), "x", "ftp://a/", 1]],
  ["unknown_field", [], [1, null]],
];

const JOB: readonly Row[] = [
  ...WORK,
  ["delay", ["0s", "365d"], ["366d", "8761h", ...WRONG_DURATIONS]],
  ["run_at", ["2020-01-01T00:00:00Z", "2030-01-01T00:00:00.123+02:00", LAST_TIME], WRONG_TIMES],
  ["dedupe_key", [text(255), "k"], ["", text(256), 1, null]],
  ["dedupe_window", ["1s", "30d"], ["0s", "31d", "721h", ...WRONG_DURATIONS]],
  ["schedule_id", [], ["sch_x"]],
];

const STEP: readonly Row[] = [
  ...RULES,
  ["name", [text(64), "a"], ["", text(65), 1, null]],
  ["url", ["https://a.test/"], ["x", null]],
  ["headers", [{ "x-a": "b" }], [{ host: "a" }, []]],
  ["delay", ["0s", "365d"], ["366d"]],
  ["requires_approval", [true], ["yes"]],
  ["queue", [], ["a"]],
];

const SCHEDULE: readonly Row[] = [
  ...WORK,
  ["name", [text(255)], ["", text(256), 1]],
  ["on_missed", ["skip", "once", "all"], ["none", "", null]],
  ["on_overlap", ["allow", "skip"], ["once", null]],
  ["starts_at", ["2030-01-01T00:00:00Z", null], WRONG_TIMES],
  ["ends_at", ["2030-01-01T00:00:00Z", LAST_TIME, null], WRONG_TIMES],
  ["paused", [true], ["true", null]],
  ["delay", [], ["1s"]],
];

const QUEUE: readonly Row[] = [
  ["concurrency", [1, 65_536, null], [0, 65_537, -1, 1.5, "1"]],
  [
    "rate_limit",
    [{ limit: 1, period: "1s" }, { limit: 100_000, period: "30d" }, null],
    [
      { limit: 0, period: "1s" },
      { limit: 100_001, period: "1s" },
      { limit: 1, period: "0s" },
      { limit: 1, period: "31d" },
      { limit: 1 },
      { period: "1s" },
      {},
      5,
    ],
  ],
  ["paused", [], [true]],
];

const KEY: readonly Row[] = [
  ["name", ["a", text(255)], ["", text(256), "a\nb", 1, null]],
  [
    "scopes",
    [["read"], ["read", "write", "approve", "admin"]],
    [[], ["read", "read"], ["root"], "read", null],
  ],
  ["mode", [], ["live"]],
];

const ROTATE: readonly Row[] = [["overlap", ["0s", "30d"], ["31d", ...WRONG_DURATIONS]]];
const NOTE: readonly Row[] = [["note", ["", text(1_000)], [text(1_001), 1, null]]];

const BULK: readonly Row[] = [
  ["status", [["pending"]], [[], ["completed"], ["nope"], "pending", null]],
  ["queue", ["a"], ["a b"]],
  ["schedule_id", ["sch_x"], [1]],
  ["tag", [text(64)], ["", text(65)]],
  ["url_contains", [text(255)], ["", text(256)]],
  ["created_after", ["2026-01-01T00:00:00Z"], WRONG_TIMES],
  ["created_before", ["2026-01-01T00:00:00Z"], WRONG_TIMES],
  ["limit", [], [10]],
];

/** Query parameters: everything is a string. */
const LIST: readonly Row[] = [
  ["limit", ["1", "100"], ["0", "101", "", "x", "1.5", "-1", "1e1"]],
  ["cursor", ["1"], ["", "x", "-1", text(256)]],
  ["status", ["pending", "awaiting_approval"], ["", "done", "pending,failed"]],
  ["queue", ["a"], ["", "a b"]],
  ["tag", ["a"], ["", text(65)]],
  ["url_contains", ["a"], [""]],
  ["created_after", ["2026-01-01T00:00:00Z"], WRONG_TIMES],
  ["nope", [], ["1"]],
];

describe("fields at their bounds", () => {
  let app: TestApp;
  before(async () => {
    app = await startTestApp();
    // Nothing here is meant to be delivered.
    for (const queue of ["default", "a", text(64), "A-z_0"]) {
      await app.call("PUT", `/v1/queues/${queue}`, {});
      await app.call("POST", `/v1/queues/${queue}/pause`);
    }
  });
  after(() => app.stop());

  /** `send` makes the call with one field set; `at` is the pointer of the object that holds it. */
  function table(
    what: string,
    rows: readonly Row[],
    send: (field: string, value: unknown) => Promise<{ status: number; text: string; body: any }>,
    at = "",
  ) {
    for (const [field, takes, refuses] of rows) {
      test(`${what}: ${field}`, async () => {
        for (const value of takes) {
          const { status, text } = await send(field, value);
          assert.ok(status < 300, `${JSON.stringify(value)?.slice(0, 80)} should be taken: ${text}`);
        }
        for (const value of refuses) {
          const { status, body, text } = await send(field, value);
          assert.equal(status, 422, `${JSON.stringify(value)?.slice(0, 80)} should be refused: ${text}`);
          const pointers: string[] = body.errors.map(({ pointer }: { pointer: string }) => pointer);
          assert.ok(
            pointers.some((pointer) => pointer === `${at}/${field}` || pointer.startsWith(`${at}/${field}/`)),
            `${field} should be named, not ${pointers.join(" ")}`,
          );
          for (const { detail } of body.errors) assert.match(detail, /^(has|is|must|can)/);
        }
      });
    }
  }

  const post = (path: string, body: unknown) => app.call("POST", path, body);
  table("job", JOB, (name, value) =>
    post("/v1/jobs", {
      url,
      ...(name === "delay" || name === "run_at" ? {} : { delay: "1h" }),
      [name]: value,
    }),
  );
  table(
    "step",
    STEP,
    (name, value) => post("/v1/jobs", { delay: "1h", steps: [{ url, [name]: value }] }),
    "/steps/0",
  );
  table("schedule", SCHEDULE, (name, value) =>
    post("/v1/schedules", { cron_expr: "0 0 * * *", url, [name]: value }),
  );
  table("queue", QUEUE, (name, value) => app.call("PUT", "/v1/queues/bounds", { [name]: value }));
  table("key", KEY, (name, value) => post("/v1/keys", { name: "a", scopes: ["read"], [name]: value }));
  table("rotation", ROTATE, (name, value) => post("/v1/signing-secrets/rotate", { [name]: value }));
  table("bulk cancel", BULK, (name, value) => post("/v1/jobs/cancel", { queue: "nothing", [name]: value }));
  table("job list", LIST, (name, value) =>
    app.call("GET", `/v1/jobs?${name}=${encodeURIComponent(String(value))}`),
  );
  for (const [action, path] of [
    ["approval", "approve"],
    ["rejection", "reject"],
  ] as const) {
    table(action, NOTE, async (name, value) => {
      const job = await app.createJob({ url, requires_approval: true, run_at: "2030-01-01T00:00:00Z" });
      return post(`/v1/jobs/${job["id"]}/${path}`, { [name]: value });
    });
  }

  test("wait: up to 60s", async () => {
    const { id } = await app.createJob({ url, delay: "1h" });
    assert.equal((await app.call("GET", `/v1/jobs/${id}?wait=0s`)).status, 200);
    for (const wait of ["61s", "2m", "", "5", "x"])
      assert.equal((await app.call("GET", `/v1/jobs/${id}?wait=${wait}`)).status, 422);
    await app.call("POST", `/v1/jobs/${id}/cancel`);
    assert.equal((await app.call("GET", `/v1/jobs/${id}?wait=60s`)).status, 200);
  });

  test("the name of a queue", async () => {
    for (const name of ["a", text(64), "A-z_0"])
      assert.equal((await app.call("PUT", `/v1/queues/${name}`, {})).status, 200);
    for (const name of [text(65), "a%20b", "a.b", "(callbacks)"])
      assert.equal((await app.call("PUT", `/v1/queues/${name}`, {})).status, 422);
  });

  test("Idempotency-Key: 1 to 255 visible characters, quoted or bare", async () => {
    const create = (key: string) =>
      app.call("POST", "/v1/jobs", { url, delay: "1h" }, { "idempotency-key": key });
    for (const key of ["k", text(255), `"quoted"`, `"${text(255)}"`])
      assert.equal((await create(key)).status, 201, key);
    for (const key of [text(256), `""`, "a b", "ü"]) assert.equal((await create(key)).status, 422, key);
    assert.equal((await create("quoted")).headers.get("idempotency-replayed"), "true");
  });

  test("fields between fields", async () => {
    const refused = async (fields: object, pointer: string) => {
      const { status, body, text } = await post("/v1/jobs", fields);
      assert.equal(status, 422, text);
      assert.deepEqual(
        body["errors"].map((fault: { pointer: string }) => fault.pointer),
        [pointer],
      );
    };
    await refused({ url, delay: "1s", run_at: "2030-01-01T00:00:00Z" }, "/run_at");
    await refused({ url, method: "GET", payload: null }, "/payload");
    await refused({}, "/url");
    await refused({ url, steps: [{ url }] }, "/url");
    await refused({ method: "POST", steps: [{ url }] }, "/method");
    await refused({ headers: {}, steps: [{ url }] }, "/headers");
    await refused({ steps: [] }, "/steps");
    await refused({ steps: many(21, () => ({ url })) }, "/steps");
    await refused(
      {
        steps: [
          { url, name: "a" },
          { url, name: "a" },
        ],
      },
      "/steps/1/name",
    );
    await refused({ steps: [{ url, name: "step_2" }, { url }] }, "/steps/1/name");
    await refused({ steps: [{ url, method: "GET", payload: 1 }] }, "/steps/0/payload");
    assert.equal((await post("/v1/jobs", { delay: "1h", steps: many(20, () => ({ url })) })).status, 201);
  });
});
