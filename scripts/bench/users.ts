/** People and programs that use Errand all day, each at a steady pace: what the soak does to it. */
import { get } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { Agent, request } from "undici";
import { CURRENT, connectMcp } from "../../test/support/mcp.ts";
import { payload } from "./paced.ts";
import { KEY, type Server } from "./server.ts";

type Body = Record<string, unknown>;
interface Answer {
  readonly id: string;
  readonly data: { readonly id: string }[];
}

const authorization = `Bearer ${KEY}`;
const SCHEDULES = 50;
const STEADY_READERS = 10;
/** The tag of what is due only after the soak. */
const FAR_OFF = "far-off";

export class Users {
  /** How many calls got the answer that they should, and what the others got instead. */
  asExpected = 0;
  readonly surprises = new Map<string, number>();
  private readonly errand: Server;
  private readonly target: string;
  private readonly agent = new Agent({ connections: 256, pipelining: 1 });
  private readonly underWay = new Set<Promise<unknown>>();
  private readonly streams = new Set<ReturnType<typeof get>>();
  private isOver = false;
  private turn = 0;

  constructor(errand: Server, target: Server) {
    this.errand = errand;
    this.target = target.url;
  }

  /** About a hundred jobs a second, and all that goes on around them. */
  start(): void {
    const { target } = this;
    const port = new URL(target).port;
    for (let n = 0; n < SCHEDULES; n++) this.during(this.replaceSchedule(n));
    for (let n = 0; n < STEADY_READERS; n++) this.read();
    this.readNothing();
    // In the lane where most others come and go.
    this.during(this.create({ url: `${target}/`, delay: "30d", tags: [FAR_OFF] }));
    this.during(this.call("PUT", "/v1/queues/limited", { rate_limit: { limit: 1, period: "1s" } }));

    this.every(25, () => this.create({ url: `${target}/` }));
    this.every(100, () => this.create({ url: `${target}/flaky`, retry_delays: ["1s"], queue: "flaky" }));
    this.every(100, () =>
      this.create({ ...this.failing(`${target}/status/500`), callback_url: `${target}/`, tags: ["failing"] }),
    );
    this.every(200, () => this.create({ url: `http://127.7.0.1:${port}/late/2000`, queue: "slow" }));
    this.every(200, () =>
      this.create({ url: `http://127.7.0.2:${port}/hang`, timeout: "2s", max_attempts: 1, queue: "hanging" }),
    );
    // A port that nobody listens on.
    this.every(200, () => this.create(this.failing("http://127.7.0.3:9/")));
    this.every(1_000, () => this.create({ url: `${target}/large`, queue: "large" }));
    this.every(1_000, () => this.create({ url: `http://${this.newAddress()}:${port}/` }));
    this.every(500, () => this.pipeline());
    this.every(500, () => this.approval());
    this.every(500, () => this.createTwice());
    this.every(500, () =>
      this.create({ url: `${target}/`, dedupe_key: `k${this.turn % 5}`, dedupe_window: "1s" }, [200, 201]),
    );
    this.every(1_000, () => this.batch(20, "batches"));
    this.every(10_000, () => this.batch(8, "limited"));
    this.every(1_000, () => this.cancel());
    this.every(500, () => this.wait());
    this.every(200, () => this.look());
    this.every(2_000, () => this.lookAround());
    this.every(10_000, () => this.inBulk());
    this.every(5_000, () => this.tendSchedule());
    this.every(10_000, () => this.key());
    this.every(2_000, () => this.mcp());
    this.every(1_000, async () => this.comeBack());
  }

  /** Begins nothing more and waits for what is under way. */
  async stop(): Promise<void> {
    this.isOver = true;
    for (const stream of this.streams) stream.destroy();
    await Promise.all(this.underWay);
    await this.call("POST", "/v1/jobs/cancel", { tag: FAR_OFF });
    await this.agent.close();
  }

  /** Jobs that have not ended, as the queues count them. */
  async unfinished(): Promise<number> {
    const { body } = await request(`${this.errand.url}/v1/queues?limit=100`, { headers: { authorization } });
    const { data } = (await body.json()) as { data: { counts: Record<string, number> }[] };
    return data.reduce((sum, { counts }) => sum + counts["pending"]! + counts["active"]!, 0);
  }

  private every(ms: number, act: () => Promise<unknown>): void {
    const go = async () => {
      const begun = performance.now();
      for (let n = 1; !this.isOver; n++) {
        this.turn += 1;
        this.during(act());
        await pause(Math.max(0, begun + n * ms - performance.now()));
      }
    };
    this.during(go());
  }

  private during(work: Promise<unknown>): void {
    const settled = work
      .catch((error: unknown) => this.surprise(String(error)))
      .finally(() => this.underWay.delete(settled));
    this.underWay.add(settled);
  }

  private surprise(what: string): void {
    this.surprises.set(what, (this.surprises.get(what) ?? 0) + 1);
  }

  private async call(
    method: "GET" | "POST" | "PUT" | "DELETE",
    path: string,
    body?: Body,
    right = [200, 201],
  ) {
    const response = await request(`${this.errand.url}${path}`, {
      method,
      dispatcher: this.agent,
      headers: { authorization, "content-type": "application/json" },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.body.text();
    if (right.includes(response.statusCode)) this.asExpected += 1;
    else
      this.surprise(
        `${method} ${path.split("?")[0]!.replaceAll(/_[0-9a-z]{26}/g, "_…")}: ${response.statusCode}`,
      );
    return (text === "" ? {} : JSON.parse(text)) as Answer;
  }

  private create(job: Body, right?: number[]): Promise<Answer> {
    return this.call("POST", "/v1/jobs", job["steps"] === undefined ? { payload, ...job } : job, right);
  }

  private failing(url: string): Body {
    return { url, retry_delays: ["1s"], max_attempts: 2, queue: "failing" };
  }

  /** A host that was never called before, of the 65,000 at which the target is met under 127.8.0.0/16. */
  private newAddress(): string {
    return `127.8.${Math.floor(this.turn / 250) % 250}.${(this.turn % 250) + 1}`;
  }

  private pipeline() {
    const url = `${this.target}/`;
    return this.create({
      payload,
      steps: [
        { name: "first", url },
        { url, payload: { text: { $from: "first#/text" }, given: { $from: "input#/text" } } },
        { url: `${this.target}/flaky`, retry_delays: ["1s"] },
      ],
    });
  }

  /** Approved, rejected, or left until nobody has approved it. */
  private async approval() {
    const fate = ["approve", "reject", null][this.turn % 3];
    const job = { url: `${this.target}/`, requires_approval: true, approval_timeout: "10s" };
    const { id } = await this.create(job);
    await pause(1_000);
    if (fate !== null) await this.call("POST", `/v1/jobs/${id}/${fate}`, { note: "seen" });
  }

  private async createTwice() {
    const headers = {
      authorization,
      "content-type": "application/json",
      "idempotency-key": `once-${this.turn}`,
    };
    const body = JSON.stringify({ url: `${this.target}/`, payload });
    const ids = await Promise.all(
      [1, 2].map(async () => {
        const url = `${this.errand.url}/v1/jobs`;
        const response = await request(url, { method: "POST", dispatcher: this.agent, headers, body });
        return ((await response.body.json()) as Answer).id;
      }),
    );
    if (ids[0] === ids[1]) this.asExpected += 1;
    else this.surprise("an idempotency key made two jobs");
  }

  private batch(length: number, queue: string) {
    const jobs = Array.from({ length }, () => ({ url: `${this.target}/`, payload, queue }));
    return this.call("POST", "/v1/jobs/batch", { jobs });
  }

  private async cancel() {
    const { id } = await this.create({ url: `${this.target}/`, delay: "30s" });
    await this.call("POST", `/v1/jobs/${id}/cancel`, {});
  }

  private async wait() {
    const { id } = await this.create({ url: `${this.target}/late/500` });
    await this.call("GET", `/v1/jobs/${id}?wait=10s`);
  }

  private async look() {
    const filters = ["", "&status=failed", "&queue=failing", "&tag=failing", "&url_contains=late"];
    const { data } = await this.call("GET", `/v1/jobs?limit=20${filters[this.turn % filters.length]}`);
    const id = data[0]?.id;
    if (id === undefined) return;
    await this.call("GET", `/v1/jobs/${id}`);
    await this.call("GET", `/v1/jobs/${id}/attempts`);
  }

  private async lookAround() {
    for (const path of ["queues", "usage", "account", "schedules", "keys"])
      await this.call("GET", `/v1/${path}`);
  }

  private async inBulk() {
    const after = new Date(Date.now() - 5_000).toISOString();
    await this.call("POST", "/v1/jobs/retry", { queue: "failing", created_after: after });
    const jobs = Array.from({ length: 100 }, () => ({
      url: `${this.target}/`,
      delay: "1h",
      queue: "delayed",
    }));
    await this.call("POST", "/v1/jobs/batch", { jobs });
    await this.call("POST", "/v1/jobs/cancel", { queue: "delayed" });
  }

  private replaceSchedule(n: number) {
    const work = { url: `${this.target}/`, payload, queue: "scheduled", tags: [`turn-${this.turn}`] };
    return this.call("PUT", `/v1/schedules/by-name/soak-${n}`, { cron_expr: "* * * * *", ...work });
  }

  private async tendSchedule() {
    const { id } = await this.replaceSchedule(this.turn % SCHEDULES);
    for (const act of ["trigger", "pause", "resume"])
      await this.call("POST", `/v1/schedules/${id}/${act}`, {});
    await this.call("GET", `/v1/schedules/${id}/occurrences`);
    if (this.turn % 2 === 0) await this.call("DELETE", `/v1/schedules/${id}`, undefined, [204]);
  }

  private async key() {
    const { id } = await this.call("POST", "/v1/keys", { name: `soak ${this.turn}`, scopes: ["read"] });
    await this.call("DELETE", `/v1/keys/${id}`, undefined, [204]);
  }

  private async mcp() {
    const service = { url: this.errand.url, key: KEY };
    const client = await connectMcp(service, { by: "http", version: CURRENT });
    const result = await client.callTool({
      name: "create_job",
      arguments: { url: `${this.target}/`, payload },
    });
    if (result.isError === true) this.surprise("create_job by MCP failed");
    else this.asExpected += 1;
    await client.close();
  }

  /** Follows the events for as long as the soak lasts. */
  private read(): void {
    this.follow((stream) => stream.resume());
  }

  /** Asks for the events and never reads them; dropped by Errand, it asks again. */
  private readNothing(): void {
    this.follow((stream) => stream.pause());
  }

  /** Reads a few events and goes, again and again, after the last one it has seen. */
  private lastId = "";
  private comeBack(): void {
    const stream = this.open(
      (answer) => {
        answer.once("data", (chunk: Buffer) => {
          this.lastId = /^id: ?(\S+)$/m.exec(chunk.toString())?.[1] ?? this.lastId;
          stream.destroy();
        });
      },
      this.lastId === "" ? {} : { "last-event-id": this.lastId },
    );
  }

  private follow(use: (answer: NodeJS.ReadableStream) => void): void {
    const stream = this.open(use);
    stream.once("close", () => {
      if (!this.isOver) setTimeout(() => this.follow(use), 1_000).unref();
    });
  }

  private open(use: (answer: NodeJS.ReadableStream) => void, headers: Record<string, string> = {}) {
    const stream = get(
      `${this.errand.url}/v1/events`,
      { agent: false, headers: { authorization, ...headers } },
      use,
    );
    stream.on("error", () => {}); // Ended by either side: that is what it is for.
    stream.once("close", () => this.streams.delete(stream));
    this.streams.add(stream);
    return stream;
  }
}
