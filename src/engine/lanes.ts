/** Which lanes may begin how many attempts: due jobs wait per (queue, origin), so that no target is in another's way. */
import type { Lane, QueueLimits } from "../store/store.ts";
import { Heap } from "./heap.ts";
import { type LaneLimits, placesFor, QUICK_MS, reserveOf, type Standing, type Traffic } from "./shares.ts";
import { Standings } from "./standings.ts";

/** Leave to claim up to `limit` jobs of a lane. The places are taken until {@link Lanes.claimed} gives back the rest. */
export interface Grant {
  readonly lane: Lane;
  readonly limit: number;
}

/** A limit that several lanes share: an origin or a queue. Lanes that met it closed wait in `parked`, in turn. */
interface Gate {
  inFlight: number;
  limit: number;
  readonly parked: Set<LaneState>;
}

interface Origin extends Gate {
  readonly name: string;
  /** Lanes that know it. */
  lanes: number;
  /** Lanes of it that are due. */
  due: number;
  /** When one of its attempts ended last, or the first of those under way began. */
  heardAt: number;
}

interface LaneState {
  readonly lane: Lane;
  readonly origin: Origin;
  readonly queue: Gate;
  /** When its first job is due, as far as is known; null for none. Too early is harmless: a claim corrects it. */
  dueAt: number | null;
  inFlight: number;
  /** The turn in which it last began an attempt: see {@link Lanes.take}. */
  servedTurn: number;
  /** idle: nothing due known. waiting: in the heap until it is due. ready: due, in turn. parked: at a closed gate. claiming: granted. */
  place: "idle" | "waiting" | "ready" | "parked" | "claiming";
}

/** A clock set back by less than this is waited for; the corrections that keep it right are far smaller. */
const SET_BACK_MS = 1_000;

/**
 * A lane costs something only when it is due and may begin: one that is not due sleeps in a heap, one at its limit is
 * parked until an attempt of its gate ends. How many jobs lie behind a lane never matters.
 */
export class Lanes {
  private readonly lanes = new Map<number, LaneState>();
  private readonly origins = new Map<string, Origin>();
  private readonly standings = new Standings();
  private readonly queues = new Map<number, Gate>();
  private readonly waiting = new Heap<LaneState>();
  /** Lanes of origins that are quick; of the others. */
  private readonly ready = { quick: new Set<LaneState>(), other: new Set<LaneState>() };
  /** Parked lanes whose origin is at its share but not at its own limit: they go on as soon as the shares grow. */
  private readonly squeezed = new Set<LaneState>();
  /** The shares at which the squeezed lanes were turned away. */
  private squeezedAt = Infinity;
  private readonly limits: LaneLimits;
  private readonly reserve: number;
  private total = 0;
  /** Origins with due lanes or attempts under way. */
  private contending = 0;
  private turn = 0;
  /** The wall clock of the last {@link take}. */
  private takenAt = 0;

  constructor(limits: LaneLimits) {
    this.limits = limits;
    this.reserve = reserveOf(limits);
  }

  /** Attempts under way. */
  get inFlight(): number {
    return this.total;
  }

  /** Lanes known; those that sleep until a time, are due but at a limit, or are due and may begin: for the metrics. */
  get depth(): { lanes: number; sleeping: number; parked: number; ready: number } {
    const parked = [...this.lanes.values()].filter(({ place }) => place === "parked").length;
    const ready = this.ready.quick.size + this.ready.other.size;
    return { lanes: this.lanes.size, sleeping: this.waiting.size, parked, ready };
  }

  /** A job of the lane is due at `dueAt`. */
  note(lane: Lane, dueAt: number): void {
    const state = this.lanes.get(lane.id) ?? this.add(lane);
    if (state.dueAt !== null && state.dueAt <= dueAt) return;
    state.dueAt = dueAt;
    if (state.place === "idle" || state.place === "waiting") this.wait(state, dueAt);
  }

  setQueueLimits({ id, concurrency, paused }: QueueLimits, now: number): void {
    const gate = this.queueGate(id);
    gate.limit = paused ? 0 : (concurrency ?? Infinity);
    this.unpark(gate, now);
    // A lane that the old rate limit put off may begin sooner by the new one: its next claim tells.
    for (const state of this.lanes.values()) {
      if (state.queue !== gate || (state.place !== "waiting" && state.place !== "claiming")) continue;
      state.dueAt = 0;
      if (state.place === "waiting") this.wait(state, 0);
    }
  }

  /** Grants places to lanes that are due, each in its turn, until nothing is due or no place is left. */
  take(now: number): Grant[] {
    if (now < this.takenAt - SET_BACK_MS) this.wakeAll(now);
    this.takenAt = now;
    const due: LaneState[] = [];
    while ((this.waiting.peek()?.at ?? Infinity) <= now) {
      const { item: state } = this.waiting.pop();
      this.leaveGates(state);
      this.move(state, "ready");
      due.push(state);
    }
    // Lanes that a rate limit holds come due together: whoever was served last goes last, so that none takes all of it.
    for (const state of due.sort((a, b) => a.servedTurn - b.servedTurn)) this.makeReady(state, now);
    // The others come first, and leave the reserve to the quick ones.
    return [...this.grant(this.ready.other, this.reserve, now), ...this.grant(this.ready.quick, 0, now)];
  }

  private grant(ready: Set<LaneState>, reserve: number, now: number): Grant[] {
    const grants: Grant[] = [];
    for (const state of ready) {
      const free = this.limits.total - reserve - this.total;
      if (free <= 0) break;
      ready.delete(state);
      const places = this.placesAt(state.origin, now);
      const closed = closedGate(state, places);
      if (closed !== null) {
        this.park(state, closed, now);
        continue;
      }
      const limit = Math.min(free, places - state.origin.inFlight, state.queue.limit - state.queue.inFlight);
      this.occupy(state, limit, now);
      this.move(state, "claiming");
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
    if (dueAt === null) this.move(state, "idle");
    else if (dueAt <= now) this.makeReady(state, now);
    else this.wait(state, dueAt);
    this.occupy(state, count - grant.limit, now);
    if (count < grant.limit) this.unparkAround(state, now);
    this.forgetIfDone(state);
    this.easeSqueeze(now);
  }

  /** An attempt of the lane has ended, which has shown something of its origin. */
  finished(lane: Lane, standing: Standing, now: number): void {
    const state = this.lanes.get(lane.id);
    if (state === undefined) return;
    this.standings.learn(lane.origin, standing);
    state.origin.heardAt = now;
    this.occupy(state, -1, now);
    this.unparkAround(state, now);
    // What it is ready for depends on what its origin has just shown.
    if (state.place === "ready") this.makeReady(state, now);
    this.forgetIfDone(state);
    this.easeSqueeze(now);
  }

  /** When something is due next: `now` when a lane is ready and a place is free, null when there is nothing to wait for. */
  wakeAt(now: number): number | null {
    const free = this.limits.total - this.total;
    if (this.ready.quick.size > 0 && free > 0) return now;
    if (this.ready.other.size > 0 && free > this.reserve) return now;
    return this.waiting.peek()?.at ?? null;
  }

  private add(lane: Lane): LaneState {
    const origin = this.originGate(lane.origin);
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

  private originGate(name: string): Origin {
    let origin = this.origins.get(name);
    if (origin === undefined) {
      const gate = { inFlight: 0, limit: this.limits.perOrigin, parked: new Set<LaneState>() };
      origin = { ...gate, name, lanes: 0, due: 0, heardAt: 0 };
      this.origins.set(name, origin);
    }
    return origin;
  }

  private queueGate(id: number): Gate {
    let gate = this.queues.get(id);
    if (gate === undefined) {
      gate = { inFlight: 0, limit: Infinity, parked: new Set() };
      this.queues.set(id, gate);
    }
    return gate;
  }

  /** The clock was set back: whatever a lane waits for, the wrong one said so. The next claim of each tells. */
  private wakeAll(now: number): void {
    for (const origin of this.origins.values()) origin.heardAt = Math.min(origin.heardAt, now);
    for (const state of this.lanes.values()) {
      if (state.place !== "waiting" && state.place !== "parked") continue;
      this.leaveGates(state);
      this.makeReady(state, now);
    }
  }

  private wait(state: LaneState, at: number): void {
    this.move(state, "waiting");
    this.waiting.put(at, state);
  }

  private move(state: LaneState, place: LaneState["place"]): void {
    if (state.place === "waiting" || state.place === "parked") this.waiting.remove(state);
    this.contend(state.origin, Number(isDue(place)) - Number(isDue(state.place)), 0);
    state.place = place;
  }

  private occupy(state: LaneState, places: number, now: number): void {
    const { origin } = state;
    if (origin.inFlight === 0) origin.heardAt = now;
    this.total += places;
    state.inFlight += places;
    state.queue.inFlight += places;
    this.contend(origin, 0, places);
  }

  private contend(origin: Origin, due: number, places: number): void {
    const before = origin.due + origin.inFlight > 0;
    origin.due += due;
    origin.inFlight += places;
    this.contending += Number(origin.due + origin.inFlight > 0) - Number(before);
  }

  private standingOf({ name, inFlight, heardAt }: Origin, now: number): Standing {
    const standing = this.standings.of(name);
    // A slow one is known for it: its silence says nothing new.
    return standing !== "slow" && inFlight > 0 && now - heardAt >= QUICK_MS ? "silent" : standing;
  }

  private placesAt(origin: Origin, now: number): number {
    return placesFor(this.standingOf(origin, now), this.limits, this.traffic, origin.inFlight);
  }

  private park(state: LaneState, gate: Gate, now: number): void {
    const { origin } = state;
    this.move(state, "parked");
    gate.parked.add(state);
    if (gate !== origin || gate.inFlight >= gate.limit) return;
    if (this.standingOf(origin, now) === "new") {
      // What others do makes no room for it: its own attempt does, or the time.
      this.waiting.put(origin.heardAt + QUICK_MS, state);
    } else {
      this.squeezed.add(state);
      this.squeezedAt = Math.min(this.squeezedAt, this.shares);
    }
  }

  private get traffic(): Traffic {
    return { taken: this.total, contending: this.contending };
  }

  /** Grows when there is more room for any standing. */
  private get shares(): number {
    const { limits, traffic } = this;
    return placesFor("quick", limits, traffic, 0) + placesFor("silent", limits, traffic, 0);
  }

  /** Places that became free anywhere may have made the shares larger, at gates where no attempt has ended. */
  private easeSqueeze(now: number): void {
    if (this.squeezed.size === 0 || this.shares <= this.squeezedAt) return;
    for (const state of this.squeezed) {
      this.leaveGates(state);
      this.makeReady(state, now);
    }
    this.squeezedAt = Infinity;
  }

  private leaveGates(state: LaneState): void {
    state.origin.parked.delete(state);
    state.queue.parked.delete(state);
    this.squeezed.delete(state);
  }

  private makeReady(state: LaneState, now: number): void {
    this.move(state, "ready");
    const isQuick = this.standingOf(state.origin, now) === "quick";
    this.ready[isQuick ? "other" : "quick"].delete(state);
    this.ready[isQuick ? "quick" : "other"].add(state);
  }

  /** Everything that waited at a gate of this lane gets its turn again; what is still closed parks again. */
  private unparkAround(state: LaneState, now: number): void {
    this.unpark(state.origin, now);
    this.unpark(state.queue, now);
  }

  private unpark(gate: Gate, now: number): void {
    if (gate.inFlight >= gate.limit) return;
    for (const state of gate.parked) {
      this.squeezed.delete(state);
      this.makeReady(state, now);
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

function isDue(place: LaneState["place"]): boolean {
  return place === "ready" || place === "parked" || place === "claiming";
}

/** The gate that lets no further attempt of the lane begin, when its origin may have so many under way. */
function closedGate({ origin, queue }: LaneState, places: number): Gate | null {
  if (origin.inFlight >= places) return origin;
  return queue.inFlight >= queue.limit ? queue : null;
}
