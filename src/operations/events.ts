/** What happens to the jobs and schedules of an account, as it happens. */
import * as v from "valibot";
import type { Principal } from "../accounts/account.ts";
import { formatTime, formatTimeOrNull } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import type { Tenant } from "../base/tenant.ts";
import type { Feed, FeedEvent } from "../engine/events.ts";
import { STATUSES } from "../jobs/job.ts";
import * as field from "./fields.ts";
import { type Operation, operation, Stream, type StreamItem } from "./operation.ts";
import { described, timeOrNull, timeOut } from "./output-fields.ts";

const jobEvent = v.object({
  type: v.picklist([
    "job.created",
    "job.pending",
    "job.started",
    "job.completed",
    "job.failed",
    "job.cancelled",
    "job.awaiting_approval",
  ]),
  at: timeOut,
  job_id: v.string(),
  status: v.picklist(STATUSES),
  previous: described(v.nullable(v.picklist(STATUSES)), "The state before; null when the job was created."),
  queue: v.string(),
  schedule_id: v.optional(described(v.string(), "Only on jobs made by a schedule.")),
});

const scheduleEvent = v.object({
  type: v.picklist([
    "schedule.created",
    "schedule.updated",
    "schedule.deleted",
    "schedule.fired",
    "schedule.missed",
    "schedule.skipped",
    "schedule.triggered",
  ]),
  at: timeOut,
  schedule_id: v.string(),
  next_run_at: timeOrNull,
});

const reset = v.object({
  type: described(v.literal("reset"), "Events may be missing here: list what you follow again."),
  at: timeOut,
});

export const eventOperations: readonly Operation[] = [
  operation({
    name: "events.stream",
    summary: "Follow what happens to jobs and schedules, as Server-Sent Events",
    description:
      "Each event has an id; a reader that comes back with it as Last-Event-ID misses nothing. Where that cannot be " +
      "promised, because the id is too old or the service was restarted since, the first event is `reset`. A comment " +
      "every 15 seconds shows that the connection lives. A reader too slow for its events is disconnected, and the stream " +
      "ends when its key is revoked.",
    scope: "read",
    effect: "read",
    input: field.closed({
      last_event_id: v.optional(
        described(v.string(), "The id to go on after. The header Last-Event-ID says the same, and counts."),
      ),
    }),
    output: v.pipe(v.variant("type", [jobEvent, scheduleEvent, reset]), v.title("Event")),
    http: { method: "GET", path: "/v1/events", status: 200 },
    cli: null,
    mcp: null,
    streams: true,
    async run({ feed, clock, principal }, { last_event_id: lastId }) {
      if (feed.listening(principal.tenant) >= MAX_STREAMS) throw tooManyStreams();
      return new EventStream(feed, principal, lastId, formatTime(clock.now()));
    },
  }),
];

/** A reader of the feed: nothing but a place in it, so that a hundred slow ones hold no memory. */
class EventStream extends Stream {
  private readonly feed: Feed;
  private readonly principal: Principal;
  private isRevoked = false;
  private position: number;
  /** What the next read begins with: word that events may be missing. */
  private first: readonly StreamItem[] = [];

  constructor(feed: Feed, principal: Principal, lastId: string | undefined, at: string) {
    super();
    this.feed = feed;
    this.principal = principal;
    const known = lastId === undefined ? null : positionOf(lastId, feed, principal.tenant);
    this.position = known ?? feed.position;
    if (lastId !== undefined && known === null)
      this.first = [{ id: this.id, type: "reset", data: { type: "reset", at } }];
  }

  get id(): string {
    return idOf(this.feed, this.position);
  }

  get ended(): boolean {
    return this.feed.closed || this.isRevoked;
  }

  read(limit: number): readonly StreamItem[] | null {
    const { first } = this;
    this.first = [];
    if (first.length > 0) return first;
    const read = this.feed.read(this.principal.tenant, this.position, limit);
    if (read === null) return null;
    this.position = read.position;
    return read.events.map((event) => itemOf(this.feed, event));
  }

  listen(wake: () => void): () => void {
    const { tenant, keyId } = this.principal;
    const stopListening = this.feed.listen(tenant, wake);
    const stopWaiting = this.feed.onEnd(keyId, () => {
      this.isRevoked = true;
      wake();
    });
    return () => {
      stopListening();
      stopWaiting();
    };
  }
}

/** What readers are given of each event: the same to all of them, so that it is made, and written, once. */
const items = new WeakMap<FeedEvent, StreamItem>();

function itemOf(feed: Feed, event: FeedEvent): StreamItem {
  const known = items.get(event);
  if (known !== undefined) return known;
  const item = { id: idOf(feed, event.position), type: event.type, data: viewEvent(event) };
  items.set(event, item);
  return item;
}

/** Of one account and mode. Every one of its events is written to each of them. */
const MAX_STREAMS = 200;

function tooManyStreams(): Problem {
  return new Problem(
    "rate_limited",
    `This account has ${MAX_STREAMS} event streams open in this mode, the most there may be. Close one of them.`,
    { headers: { "Retry-After": "5" } },
  );
}

function idOf(feed: Feed, position: number): string {
  return `${feed.boot}-${position}`;
}

/** The position that an id stands for, or null when events after it may be gone. */
function positionOf(id: string, feed: Feed, tenant: Tenant): number | null {
  const [boot, digits] = id.split("-");
  if (boot !== feed.boot || digits === undefined || !/^\d{1,15}$/.test(digits)) return null;
  const position = Number(digits);
  return feed.keeps(tenant, position) ? position : null;
}

function viewEvent({ type, change }: FeedEvent) {
  const at = formatTime(change.at);
  if (change.kind === "schedule") {
    return { type, at, schedule_id: change.scheduleId, next_run_at: formatTimeOrNull(change.nextRunAt) };
  }
  return {
    type,
    at,
    job_id: change.jobId,
    status: change.status,
    previous: change.previous,
    queue: change.queue,
    ...(change.scheduleId === null ? {} : { schedule_id: change.scheduleId }),
  };
}
