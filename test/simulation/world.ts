/** One machine with Errand on it: processes that come and go over one data folder, on one clock that only we move. */
import { copyFileSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../src/base/clock.ts";
import { Problem } from "../../src/base/errors.ts";
import type { Logger } from "../../src/base/log.ts";
import type { Tenant } from "../../src/base/tenant.ts";
import { Engine } from "../../src/engine/engine.ts";
import { DATABASE_FILE, openStore } from "../../src/store/sqlite/open.ts";
import type { Store } from "../../src/store/store.ts";
import { VirtualClock } from "../support/clock.ts";
import {
  box,
  copyData,
  hasLog,
  newRoot,
  readJobs,
  START,
  shortenLog,
  type Template,
  template,
} from "./files.ts";
import { disk, installMachine, newestLog } from "./machine.ts";
import { mortalClock } from "./mortal-clock.ts";
import { Outcomes } from "./outcomes.ts";
import type { Random } from "./random.ts";
import { KEPT_MS, Retention } from "./retention.ts";
import { Target } from "./target.ts";
import { Trace } from "./trace.ts";
import { Witness } from "./witness.ts";

/** Changes the store that the engine is given: how a test breaks a rule on purpose. */
export type Breakage = (store: Store) => Store;

/** Writes a copy of a data folder's database to a file. */
export type Backup = (folder: string, target: string) => void;

/** More turns than any work takes: who needs them is running in a circle. */
const MAX_TURNS = 20_000;

/** A life of the service: from its start until it is stopped or dies. */
interface Life {
  readonly folder: string;
  readonly store: Store;
  readonly engine: Engine;
  readonly outcomes: Outcomes;
  readonly log: number;
  readonly timers: Set<() => void>;
  isOver: boolean;
}

export class World {
  readonly clock = new VirtualClock(START);
  readonly trace = new Trace(this.clock);
  readonly witness = new Witness(this.trace);
  readonly target: Target;
  readonly tenants: readonly [Tenant, Tenant];
  private readonly random: Random;
  readonly retention: Retention;
  private readonly breakage: Breakage;
  private readonly backup: Backup;
  private readonly limits;
  private readonly root: string;
  private folders = 0;
  private hasFailedToStart = false;
  private life: Life;

  private constructor(random: Random, breakage: Breakage, backup: Backup, { folder, tenants }: Template) {
    this.random = random;
    this.breakage = breakage;
    this.backup = backup;
    this.retention = new Retention(random.pick(KEPT_MS), this.witness, this.clock);
    this.tenants = tenants;
    this.limits = { total: random.between(2, 8), perOrigin: random.between(1, 5) };
    this.target = new Target(random, this.witness, this.limits);
    this.root = newRoot();
    const first = this.newFolder();
    copyFileSync(join(folder, DATABASE_FILE), join(first, DATABASE_FILE));
    this.life = this.begin(first, 0);
  }

  static async create(random: Random, breakage: Breakage, backup: Backup): Promise<World> {
    installMachine();
    disk.reset();
    return new World(random, breakage, backup, await template());
  }

  get store(): Store {
    return this.life.store;
  }

  get outcomes(): Outcomes {
    return this.life.outcomes;
  }

  get file(): string {
    return join(this.life.folder, DATABASE_FILE);
  }

  now(): number {
    return this.clock.now();
  }

  /** Runs `told` with the answer if the service lives to give it. What a dead one would have said, nobody hears. */
  ask<T>(
    what: string,
    call: (store: Store) => Promise<T>,
    told: (answer: T) => void,
    refused: () => void = () => {},
  ): void {
    const { life } = this;
    call(life.store).then(
      (answer) => {
        if (!life.isOver) told(answer);
      },
      (error: unknown) => {
        if (life.isOver) return;
        refused();
        this.refused(what, error);
      },
    );
  }

  private refused(what: string, error: unknown): void {
    const isExpected =
      error instanceof Problem && (error.code === "unavailable" ? disk.faults > 0 : error.status === 409);
    if (isExpected) this.trace.add(`${what}: refused, ${error.code}`);
    else this.witness.violate(`${what} failed: ${String(error)}`);
  }

  // ── Turns and time ────────────────────────────────────────────────────────────────────────────────────────────────

  /** One turn of the event loop: all that is ready goes one step further. */
  turn(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  /** Turns until nothing but time can make anything happen. */
  readonly rest = async (): Promise<void> => {
    for (let turns = 0; ; turns++) {
      await this.turn();
      if (!process.getActiveResourcesInfo().includes("Immediate")) break;
      if (turns > MAX_TURNS) return this.witness.violate("the service never comes to rest");
    }
    if (!this.life.isOver) await this.witness.learnQueues(this.store, this.now());
    if (!this.hasFailedToStart || this.witness.failure !== null) return;
    // Whoever supervises the service starts it again.
    this.kill();
    await this.rest();
  };

  pass(durationMs: number): Promise<void> {
    this.trace.add(`${durationMs} ms pass`);
    return this.clock.advance(durationMs, this.rest);
  }

  /** The wall clock is set, or the machine was suspended. */
  jump(byMs: number): void {
    this.clock.jump(this.now() + byMs);
    this.trace.add(`the clock jumps by ${byMs} ms`);
    if (byMs >= 0) return;
    this.witness.wentBack = true;
    this.witness.forgetQueues();
  }

  // ── Lives ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** kill -9: what was committed stays, whatever was in memory is gone. */
  kill(): void {
    this.trace.add("the service is killed");
    const certain = disk.certain(this.life.log);
    this.die();
    this.life = this.begin(this.copyFolder(null), certain);
  }

  /** The same, and of the commits that no sync covers some are gone, too. */
  cutPower(): void {
    const certain = disk.certain(this.life.log);
    if (certain === null) return this.kill();
    this.trace.add("the power fails");
    this.die();
    const folder = this.copyFolder(certain);
    const left = readJobs(join(folder, DATABASE_FILE));
    this.witness.reload(left, this.retention.keepsAll);
    this.target.hangUp(true);
    // Whoever looked has copied the log into the file.
    this.life = this.begin(folder, 0);
  }

  /** `errand backup`, beside the running service. */
  backUp(): void {
    this.trace.add("a backup is made");
    const target = join(this.newFolder(), DATABASE_FILE);
    this.backup(this.life.folder, target);
    this.witness.checkBackup(readJobs(target).rows);
  }

  /** SIGTERM: the service ends what it can within its grace, and starts again. */
  async restart(graceMs: number): Promise<void> {
    await this.rest();
    this.trace.add("the service is stopped");
    const { life } = this;
    life.outcomes.hurry();
    await this.until(life.engine.stop(graceMs));
    await this.close();
    // A log that is left, since the disk is in trouble, holds what it held; else all is in the file.
    this.life = this.begin(life.folder, hasLog(life.folder) ? disk.certain(life.log) : 0);
  }

  /** Waits for an answer; time passes as it needs. */
  async finish(promise: Promise<unknown>): Promise<void> {
    await this.until(promise.then(() => {}));
  }

  /** Ends the last life in order; the answer is the database file that it leaves. */
  async end(): Promise<string> {
    await this.until(this.life.engine.stop(0));
    await this.close();
    return this.file;
  }

  private async close(): Promise<void> {
    await this.rest();
    const { store } = this.life;
    this.die();
    await this.until(store.close());
  }

  /** Lets go of everything, whatever state it is in. */
  async clear(): Promise<void> {
    if (!this.life.isOver) {
      this.die();
      await this.abandon(this.life);
    }
    rmSync(this.root, { recursive: true, force: true });
  }

  private async until(promise: Promise<void>): Promise<void> {
    const state = { isDone: false };
    const done = promise.then(() => {
      state.isDone = true;
    });
    await this.rest();
    for (let i = 0; !state.isDone && i < 200; i++) await this.clock.advance(100, this.rest);
    if (!state.isDone) this.witness.violate("the service does not answer");
    else await done;
  }

  private die(): void {
    const { life } = this;
    life.isOver = true;
    this.retention.end();
    for (const cancel of life.timers) cancel();
    life.timers.clear();
    life.outcomes.die();
    this.target.hangUp(false);
    this.witness.died();
  }

  /**
   * The next life gets a copy of the files as they are in this moment. What is left of the old one may write to its own
   * for a turn or two, where nobody looks, and is then closed.
   */
  private copyFolder(logBytes: number | null): string {
    const { life } = this;
    const folder = this.newFolder();
    copyData(life.folder, folder);
    if (logBytes !== null) shortenLog(folder, logBytes, this.random);
    void this.abandon(life);
    return folder;
  }

  private async abandon(life: Life): Promise<void> {
    await this.turn();
    await this.turn();
    await life.store.close().catch(() => {});
  }

  private newFolder(): string {
    const folder = join(this.root, String(++this.folders));
    mkdirSync(folder);
    return folder;
  }

  /** `certain`: how much of the log that is there a power cut leaves, null when that is not known. */
  private begin(folder: string, certain: number | null): Life {
    this.hasFailedToStart = false;
    const timers = new Set<() => void>();
    const clock = mortalClock(this.clock, timers, () => life.isOver);
    const store = this.open(folder, clock);
    disk.trust(newestLog, certain);
    const outcomes = new Outcomes(store, this.random, this.witness);
    if (this.target.isKind) outcomes.hurry();
    const watched = this.retention.watched(this.breakage(outcomes.watched()), () => life.isOver);
    this.retention.begin(join(folder, DATABASE_FILE));
    const engine = new Engine({
      store: watched,
      sender: this.target.sender(clock, () => life.isOver),
      clock,
      log: this.logger(() => life),
      version: "simulation",
      limits: this.limits,
      retentionMs: this.retention.keptMs,
    });
    const life: Life = { folder, store: watched, engine, outcomes, log: newestLog, timers, isOver: false };
    store.subscribe((changes) => {
      if (!life.isOver) this.witness.hear(changes);
    });
    engine.start().then(
      () => {
        if (!life.isOver) this.trace.add("started");
      },
      (error: unknown) => {
        if (life.isOver) return;
        this.refused("start", error);
        this.hasFailedToStart = true;
      },
    );
    return life;
  }

  private open(folder: string, clock: Clock): Store {
    try {
      return openStore({ folder, box, clock });
    } catch (error) {
      if (disk.faults === 0) throw error;
      this.trace.add("the store does not open on a failing disk");
      disk.heal();
      return openStore({ folder, box, clock });
    }
  }

  /** What the engine complains of must have a cause: a fault of the disk. */
  private logger(life: () => Life): Logger {
    const say = (fields: unknown, text?: string) => {
      if (life().isOver) return;
      const message = text ?? String(fields);
      const error: unknown = (fields as { err?: unknown }).err;
      if (error !== undefined) this.refused(`log: ${message}`, error);
      else this.trace.add(`log: ${message}`);
      if (/changed nothing/.test(message)) this.witness.violate("an outcome was lost");
    };
    return { error: say, warn: say, info: () => {}, debug: () => {} } as unknown as Logger;
  }
}
