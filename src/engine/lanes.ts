/** Which lanes may begin how many attempts: due jobs wait per (queue, origin), so that no target is in another's way. */
import type { Lane, QueueLimits } from "../store/store.ts";
import { Heap } from "./heap.ts";

export interface LaneLimits {
  /** Attempts at once, over all. */
  readonly total: number;
  /** Attempts at once at one origin. */
  readonly perOrigin: number;
}

/** Leave to claim up to `limit` jobs of a lane. The places are taken until {@link Lanes.claimed} gives back the rest. */
export interface Grant {
  readonly lane: Lane;
  readonly limit: number;
}

/** A limit that several lanes share: an origin or a queue. Lanes that met it closed wait in `parked`, in turn. */
interface Gate {
  /** Lanes that know it. */
  lanes: number;
  inFlight: number;
  limit: number;
  readonly parked: Set<LaneState>;
}

interface LaneState {
  readonly lane: Lane;
  readonly origin: Gate;
  readonly queue: Gate;
  /** When its first job is due, as far as is known; null for none. Too early is harmless: a claim corrects it. */
  dueAt: number | null;
  inFlight: number;
  /** The turn in which it last began an attempt: see {@link Lanes.take}. */
  servedTurn: number;
  /** idle: nothing due known. waiting: in the heap. ready: due, in turn. parked: at a closed gate. claiming: granted. */
  place: "idle" | "waiting" | "ready" | "parked" | "claiming";
}

/**
 * A lane costs something only when it is due and may begin: one that is not due sleeps in a heap, one at its limit is
 * parked until an attempt of its gate ends. How many jobs lie behind a lane never matters.
 */
export class Lanes {
  private readonly lanes = new Map<number, LaneState>();
  private readonly origins = new Map<string, Gate>();
  private readonly queues = new Map<number, Gate>();
  private readonly waiting = new Heap<LaneState>();
  private readonly ready = new Set<LaneState>();
  /** Parked lanes whose origin is at its share but not at its own limit: they go on as soon as the share grows. */
  private readonly squeezed = new Set<LaneState>();
  /** The share at which the squeezed lanes were turned away. */
  private squeezedAt = Infinity;
  private readonly limits: LaneLimits;
  private total = 0;
  private turn = 0;

  constructor(limits: LaneLimits) {
    this.limits = limits;
  }

  /** Attempts under way. */
  get inFlight(): number {
    return this.total;
  }

  /** Lanes known, and those that are due but at a limit: for the metrics. */
  get depth(): { lanes: number; parked: number; ready: number } {
    let parked = 0;
    for (const state of this.lanes.values()) if (state.place === "parked") parked += 1;
    return { lanes: this.lanes.size, parked, ready: this.ready.size };
  }

  /** A job of the lane is due at `dueAt`. */
  note(lane: Lane, dueAt: number): void {
    const state = this.lanes.get(lane.id) ?? this.add(lane);
    if (state.dueAt !== null && state.dueAt <= dueAt) return;
    state.dueAt = dueAt;
    if (state.place === "idle" || state.place === "waiting") this.wait(state, dueAt);
  }

  setQueueLimits({ id, concurrency, paused }: QueueLimits): void {
    const gate = this.queueGate(id);
    gate.limit = paused ? 0 : (concurrency ?? Infinity);
    this.unpark(gate);
    // A lane that the old rate limit put off may begin sooner by the new one: its next claim tells.
    for (const state of this.lanes.values()) {
      if (state.queue !== gate || (state.place !== "waiting" && state.place !== "claiming")) continue;
      state.dueAt = 0;
      if (state.place === "waiting") this.wait(state, 0);
    }
  }

  /** Grants places to lanes that are due, each in its turn, until nothing is due or no place is left. */
  take(now: number): Grant[] {
    const due: LaneState[] = [];
    for (
      let entry = this.waiting.peek();
      entry !== undefined && entry.at <= now;
      entry = this.waiting.peek()
    ) {
      const { item: state } = this.waiting.pop();
      if (state.place !== "waiting" || state.dueAt === null || state.dueAt > now) continue;
      state.place = "ready";
      due.push(state);
    }
    // Lanes that a rate limit holds come due together: whoever was served last goes last, so that none takes all of it.
    for (const state of due.sort((a, b) => a.servedTurn - b.servedTurn)) this.ready.add(state);
    const grants: Grant[] = [];
    for (const state of this.ready) {
      const free = this.limits.total - this.total;
      if (free <= 0) break;
      this.ready.delete(state);
      const closed = this.closedGate(state);
      if (closed !== null) {
        this.park(state, closed);
        continue;
      }
      const limit = Math.min(
        free,
        this.originLimit() - state.origin.inFlight,
        state.queue.limit - state.queue.inFlight,
      );
      this.occupy(state, limit);
      state.place = "claiming";
      state.dueAt = null;
      grants.push({ lane: state.lane, limit });
    }
    return grants;
  }

  /** What came of a grant: places not used are free again, and the lane waits for its next job. */
  claimed(grant: Grant, count: number, nextDueAt: number | null, now: number): void {
    const state = this.lanes.get(grant.lane.id);
    if (state === undefined) return;
    // A note that came while the claim was under way may know of something that the claim did not see.
    const dueAt =
      state.dueAt === null || nextDueAt === null
        ? (state.dueAt ?? nextDueAt)
        : Math.min(state.dueAt, nextDueAt);
    state.dueAt = dueAt;
    if (count > 0) state.servedTurn = ++this.turn;
    if (dueAt === null) {
      state.place = "idle";
    } else if (dueAt <= now) {
      this.makeReady(state);
    } else {
      this.wait(state, dueAt);
    }
    this.occupy(state, count - grant.limit);
    if (count < grant.limit) this.unparkAround(state);
    this.forgetIfDone(state);
    this.easeSqueeze();
  }

  /** An attempt of the lane has ended. */
  finished(lane: Lane): void {
    const state = this.lanes.get(lane.id);
    if (state === undefined) return;
    this.occupy(state, -1);
    this.unparkAround(state);
    this.forgetIfDone(state);
    this.easeSqueeze();
  }

  /** When something is due next: `now` when a lane is ready and a place is free, null when there is nothing to wait for. */
  wakeAt(now: number): number | null {
    if (this.ready.size > 0 && this.total < this.limits.total) return now;
    return this.waiting.peek()?.at ?? null;
  }

  private add(lane: Lane): LaneState {
    let origin = this.origins.get(lane.origin);
    if (origin === undefined) {
      origin = { lanes: 0, inFlight: 0, limit: this.limits.perOrigin, parked: new Set() };
      this.origins.set(lane.origin, origin);
    }
    const state: LaneState = {
      lane,
      origin,
      queue: this.queueGate(lane.queueId),
      dueAt: null,
      inFlight: 0,
      servedTurn: 0,
      place: "idle",
    };
    origin.lanes += 1;
    this.lanes.set(lane.id, state);
    return state;
  }

  private queueGate(id: number): Gate {
    let gate = this.queues.get(id);
    if (gate === undefined) {
      gate = { lanes: 0, inFlight: 0, limit: Infinity, parked: new Set() };
      this.queues.set(id, gate);
    }
    return gate;
  }

  private wait(state: LaneState, at: number): void {
    state.place = "waiting";
    this.waiting.push(at, state);
  }

  private occupy(state: LaneState, places: number): void {
    this.total += places;
    state.inFlight += places;
    state.origin.inFlight += places;
    state.queue.inFlight += places;
  }

  private closedGate(state: LaneState): Gate | null {
    if (state.origin.inFlight >= this.originLimit()) return state.origin;
    if (state.queue.inFlight >= state.queue.limit) return state.queue;
    return null;
  }

  /**
   * Up to half of all places an origin may use its own limit. Above that each gets an equal share of the other half,
   * at least one, so that targets which hang cannot take every place from those which answer.
   */
  private originLimit(): number {
    const half = this.limits.total / 2;
    if (this.total < half) return this.limits.perOrigin;
    return Math.max(1, Math.min(this.limits.perOrigin, Math.floor(half / Math.max(1, this.origins.size))));
  }

  private park(state: LaneState, gate: Gate): void {
    state.place = "parked";
    gate.parked.add(state);
    if (gate !== state.origin || gate.inFlight >= gate.limit) return;
    this.squeezed.add(state);
    this.squeezedAt = Math.min(this.squeezedAt, this.originLimit());
  }

  /** Places that became free anywhere may have made the share larger, at gates where no attempt has ended. */
  private easeSqueeze(): void {
    if (this.squeezed.size === 0 || this.originLimit() <= this.squeezedAt) return;
    for (const state of this.squeezed) {
      state.origin.parked.delete(state);
      this.makeReady(state);
    }
    this.squeezed.clear();
    this.squeezedAt = Infinity;
  }

  private makeReady(state: LaneState): void {
    state.place = "ready";
    this.ready.add(state);
  }

  /** Everything that waited at a gate of this lane gets its turn again; what is still closed parks again. */
  private unparkAround(state: LaneState): void {
    this.unpark(state.origin);
    this.unpark(state.queue);
  }

  private unpark(gate: Gate): void {
    if (gate.inFlight >= gate.limit) return;
    for (const state of gate.parked) {
      this.squeezed.delete(state);
      this.makeReady(state);
    }
    gate.parked.clear();
  }

  private forgetIfDone(state: LaneState): void {
    if (state.place !== "idle" || state.inFlight > 0) return;
    this.lanes.delete(state.lane.id);
    state.origin.lanes -= 1;
    if (state.origin.lanes === 0) this.origins.delete(state.lane.origin);
  }
}
