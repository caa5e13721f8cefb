/** One simulation: random clients, then quiet, then every promise is checked. */
import { backup } from "../../src/store/sqlite/backup.ts";
import { Clients } from "./clients.ts";
import { openRaw } from "./files.ts";
import { disk } from "./machine.ts";
import { Random } from "./random.ts";
import { pausedAs } from "./requests.ts";
import { verifyDatabase, verifyDueTimes, verifyPort } from "./verify.ts";
import { Violation } from "./witness.ts";
import { type Backup, type Breakage, World } from "./world.ts";

export interface Run {
  /** Equal when two runs were the same. */
  readonly fingerprint: string;
}

export class SimulationFailure extends Error {
  /** Which promise was broken. */
  readonly reason: string;

  constructor(seed: number, reason: string, trace: string) {
    super(`${trace}\n\nseed ${seed}: ${reason}\nnpm run simulate -- --seed ${seed}`);
    this.reason = reason;
  }
}

const MAX_ROUNDS = 1_500;

/** Throws a {@link SimulationFailure} where a promise was broken. */
export async function simulate(
  seed: number,
  breakage: Breakage = (store) => store,
  backUp: Backup = backup,
): Promise<Run> {
  const random = new Random(seed);
  const world = await World.create(random, breakage, backUp);
  try {
    const clients = new Clients(world, random);
    const actions = random.between(60, 160);
    for (let i = 0; i < actions && world.witness.failure === null; i++) {
      await clients.act();
      await pace(world, random);
    }
    if (world.witness.failure === null) await settle(world);
    if (world.witness.failure !== null) throw world.witness.failure;
    return { fingerprint: world.trace.fingerprint };
  } catch (error) {
    throw new SimulationFailure(seed, reasonOf(error), world.trace.toString());
  } finally {
    await world.clear();
  }
}

/** A violation says it all; anything else is a defect of the service or of the simulation, and its place matters. */
function reasonOf(error: unknown): string {
  if (error instanceof Violation) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** How far the service gets before the next thing happens: mostly not far. */
async function pace(world: World, random: Random): Promise<void> {
  const turns = random.weighted([
    [40, 0],
    [30, random.between(1, 4)],
    [30, Infinity],
  ]);
  if (turns === Infinity) return world.rest();
  for (let i = 0; i < turns; i++) await world.turn();
}

/** Nothing new and nothing broken from here on: everything that may end, ends. Then all is compared. */
async function settle(world: World): Promise<void> {
  const { witness, target, trace } = world;
  trace.add("the clients go");
  disk.heal();
  target.isKind = true;
  target.answerAll();
  world.outcomes.hurry();
  await world.rest();
  await world.pass(5_000);
  await verifyDueTimes(world);
  for (const { schedule } of witness.schedules)
    await world.finish(
      world.store.schedules.update(schedule.tenant, schedule.id, (one) => pausedAs(one, true, world.now())),
    );
  for (const { tenant, name } of witness.queues.values()) {
    witness.queue(tenant, name).changing({ paused: false }, world.now());
    await world.finish(world.store.queues.configure(tenant, name, { paused: false }, world.now()));
  }
  await drain(world);
  if (witness.failure !== null) return;
  await verifyPort(world);
  const db = openRaw(await world.end());
  try {
    verifyDatabase(db, world);
  } finally {
    db.close();
  }
}

async function drain(world: World): Promise<void> {
  const db = openRaw(world.file);
  try {
    const open = db.prepare<[], { status: string; due: number | null; count: number }>(
      `SELECT status, min(due_at) AS due, count(*) AS count FROM jobs
       WHERE status IN ('pending', 'active') OR (status = 'awaiting_approval' AND due_at IS NOT NULL) GROUP BY status`,
    );
    for (let round = 0; round < MAX_ROUNDS && world.witness.failure === null; round++) {
      const left = open.all();
      if (left.length === 0) return;
      const due = Math.min(...left.map((row) => row.due ?? Infinity));
      // What is due and waits for its rate limit gets time, too.
      const wait = due > world.now() ? due - world.now() : 29_000;
      if (wait !== Infinity && wait > 1_500) world.clock.jump(world.now() + wait - 1_000);
      await world.pass(1_100);
    }
    const rest = open.all().map(({ status, count }) => `${count} ${status}`);
    if (rest.length > 0) world.witness.violate(`jobs are stuck: ${rest.join(", ")}`);
  } finally {
    db.close();
  }
}
