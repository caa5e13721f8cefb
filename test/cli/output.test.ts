/** What the command line prints: tables that fit, texts that cannot act on a terminal, colours where they are wanted. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RawJson } from "../../src/base/json.ts";
import { type Format, print } from "../../src/cli/output.ts";
import { textWidth } from "../../src/cli/table.ts";
import { hasColour, printable, type Terminal } from "../../src/cli/terminal.ts";
import { readEvents, type ServerEvent } from "../../src/client/server-events.ts";
import { VirtualClock } from "../support/clock.ts";

const ID = "job_01jd0000000000000000000000";

function printed(what: string, answer: unknown, format: Format, width: number | null = null): string[] {
  const lines: string[] = [];
  const terminal: Terminal = {
    env: {},
    clock: new VirtualClock("2026-01-05T00:00:00.000Z"),
    width,
    out: (line) => lines.push(...line.split("\n")),
    say: () => {},
    paint: (text, style) => (style === "red" ? `<${text}>` : text),
    paintAside: (text) => text,
    stdin: () => Promise.resolve(Buffer.alloc(0)),
  };
  print(what, answer, format, terminal);
  return lines;
}

const job = {
  id: ID,
  status: "failed",
  attempts: 3,
  response_code: 500,
  url: "https://example.com/a/very/long/path/that/does/not/fit",
  created_at: "2026-01-04T23:57:00.000Z",
  queue: "default",
  last_error: "The target answered 500.",
};

describe("tables", () => {
  test("off a terminal nothing is cut, and a time stands with how long ago it was", () => {
    const [heading, line] = printed("jobs.list", { data: [job], next_cursor: null }, "table");
    assert.match(heading ?? "", /^ID +STATUS +CODE +URL +CREATED +ATTEMPTS +QUEUE +LAST ERROR$/);
    assert.equal(
      line,
      `${ID}  <failed>  500   ${job.url}  2026-01-04 23:57:00Z (3 min ago)  3         default  The target answered 500.`,
    );
  });

  test("a pipeline, which has no URL of its own, is called so where the others have theirs", () => {
    const steps = [{ ...job, url: null }, job];
    const lines = printed("jobs.list", { data: steps, next_cursor: null }, "table");
    assert.match(lines[1] ?? "", /500 +\(pipeline\) +2026/);
    const schedules = { data: [{ id: "sch_1", cron_expr: "@daily", url: null }], next_cursor: null };
    assert.match(printed("schedules.list", schedules, "table")[1] ?? "", /\(pipeline\)$/);
    assert.ok(!printed("jobs.get", { id: ID, url: null }, "table").join().includes("pipeline"));
  });

  for (const width of [200, 140, 120, 100, 80, 60, 40]) {
    test(`a table fits ${width} columns, and its ids are whole`, () => {
      const items = [
        job,
        { ...job, status: "awaiting_approval", url: "https://例え.jp/とても長いパスとても長い" },
      ];
      const lines = printed("jobs.list", { data: items, next_cursor: null }, "table", width);
      for (const line of lines) assert.ok(textWidth(line.replaceAll(/[<>]/g, "")) <= width, line);
      assert.ok(lines.slice(1).every((line) => line.startsWith(ID)));
    });
  }

  for (const width of [130, 100, 80, 60, 40]) {
    test(`a heading that is longer than its values is cut with them: ${width} columns`, () => {
      const counts = { pending: 1, active: 2, awaiting_approval: 3, completed: 4, failed: 5, cancelled: 6 };
      const queue = { name: "default", paused: true, counts, oldest_due_age_ms: 1_000, concurrency: 5 };
      const [heading = "", line = ""] = printed("queues.list", { data: [queue] }, "table", width);
      assert.ok(textWidth(heading) <= width, heading);
      const starts = (text: string) => [...text.matchAll(/(?<=^| {2})\S/g)].map(({ index }) => index);
      assert.deepEqual(starts(heading), starts(line));
    });
  }

  test("the room that a column leaves is for the texts of the others", () => {
    const [heading, line] = printed("jobs.list", { data: [job], next_cursor: null }, "table", 80);
    assert.equal(line, `${ID}  <failed>  500   https://example.com/a/…  3 min ago`);
    assert.equal(heading, `${"ID".padEnd(ID.length)}  STATUS  CODE  URL                      CREATED`);
  });

  test("characters count as many columns as a terminal gives them", () => {
    const widths = { "ページ、終": 10, ｱｰｳ: 3, 가나: 4, "🎉x": 3, "é…→": 3, "（a）": 5 };
    for (const [text, width] of Object.entries(widths)) assert.equal(textWidth(text), width, text);
  });

  test("an operation that no columns were chosen for shows every plain field that says something", () => {
    const answer = { data: [{ name: "a", n: 1, none: null, inner: { x: 1 } }], next_cursor: null };
    assert.deepEqual(printed("things.list", answer, "table"), ["NAME  N", "a     1"]);
  });

  test("what a target answers cannot act on the terminal", () => {
    const evil = "a\u001b[2Jb\u009b1mc\rd\u202ee";
    const lines = printed("jobs.get", { id: ID, response_body: new RawJson(JSON.stringify(evil)) }, "table");
    assert.ok(!/[\u0000-\u001f\u007f-\u009f\u202e]/.test(lines.join("")), lines.join(""));
    assert.equal(printable("\u001b"), "\\u001b");
    const json = printed("jobs.get", { id: ID, response_body: evil }, "json", 80).join("");
    assert.equal(JSON.parse(json).response_body, evil);
    assert.ok(!json.includes("\u009b"));
  });
});

describe("formats for programs", () => {
  const answer = { data: [{ id: "a", payload: new RawJson(`{"n":1.0}`) }, { id: "b" }], next_cursor: "x" };

  test("json is the answer, ndjson an item a line, id the ids", () => {
    assert.equal(
      printed("x", answer, "json").join("\n"),
      `{\n  "data": [\n    {\n      "id": "a",\n      "payload": {"n":1.0}\n    },\n    {\n      "id": "b"\n    }\n  ],\n  "next_cursor": "x"\n}`,
    );
    assert.deepEqual(printed("x", answer, "ndjson"), [`{"id":"a","payload":{"n":1.0}}`, `{"id":"b"}`]);
    assert.deepEqual(printed("x", answer, "id"), ["a", "b"]);
    assert.deepEqual(printed("x", { name: "mail" }, "id"), ["mail"]);
    assert.throws(() => printed("x", { count: 1 }, "id"), /has no ids/);
  });

  test("in ndjson an item is one line, however the target or the payload laid out its JSON", () => {
    const raw = new RawJson(`{\r\n  "n": 1.0,\n  "t": "a\\nb\u2028"\n}\r`);
    const lines = printed("jobs.get", { id: "a", response_body: raw }, "ndjson");
    assert.equal(lines.length, 1);
    assert.ok(!lines.join("").includes("\r"));
    const expected = { id: "a", response_body: { n: 1, t: "a\nb\u2028" } };
    assert.deepEqual(JSON.parse(lines[0] ?? ""), expected);
    assert.match(lines[0] ?? "", /"n": 1\.0/);
  });
});

test("colours: on a terminal, unless NO_COLOR; elsewhere with FORCE_COLOR", () => {
  assert.equal(hasColour({}, true), true);
  assert.equal(hasColour({}, false), false);
  assert.equal(hasColour({ NO_COLOR: "1" }, true), false);
  assert.equal(hasColour({ NO_COLOR: "" }, true), true);
  assert.equal(hasColour({ FORCE_COLOR: "1" }, false), true);
  assert.equal(hasColour({ FORCE_COLOR: "0" }, true), false);
  assert.equal(hasColour({ NO_COLOR: "1", FORCE_COLOR: "1" }, true), false);
  assert.equal(hasColour({ TERM: "dumb" }, true), false);
});

test("events are read however the stream is cut, with every kind of line end", async () => {
  const text = `retry: 1\nid: 0\n\n: alive\n\nid: 1\nevent: job.created\ndata: {"é":1}\n\nid: 2\r\ndata: a\r\ndata: b\r\n\r\ndata:c\r\rid: 9\ndata: cut off`;
  const bytes = Buffer.from(text);
  for (let size = 1; size <= bytes.length; size += 3) {
    const events: ServerEvent[] = [];
    const chunks = async function* () {
      for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
    };
    for await (const event of readEvents(chunks())) events.push(event);
    assert.deepEqual(events, [
      { id: "0", type: "message", data: "" },
      { id: "1", type: "job.created", data: `{"é":1}` },
      { id: "2", type: "message", data: "a\nb" },
      { id: null, type: "message", data: "c" },
    ]);
  }
});
