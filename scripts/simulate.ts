/**
 * Runs simulations of the whole engine, on every core, and stops at the first that breaks a promise.
 *
 *   npm run simulate -- --seed 123              one, with its trace where it fails
 *   npm run simulate -- --seeds 2000            as many, from seed 1
 *   npm run simulate -- --seeds 2000 --from 5000
 */
import { type ChildProcess, fork } from "node:child_process";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { SimulationFailure, simulate } from "../test/simulation/simulate.ts";

/** A simulation takes a fraction of a second; one that takes this long runs in a circle. */
const HANGING_MS = 60_000;

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    seeds: { type: "string", default: "1000" },
    from: { type: "string", default: "1" },
    every: { type: "string", default: "1" },
  },
});

if (values.seed !== undefined) await one(Number(values.seed));
else if (process.send === undefined) await all(Number(values.from), Number(values.seeds));
else await share(Number(values.from), Number(values.seeds), Number(values.every));

async function one(seed: number): Promise<void> {
  try {
    const { fingerprint } = await simulate(seed);
    console.log(`seed ${seed} holds (${fingerprint})`);
  } catch (error) {
    console.error(error instanceof SimulationFailure ? error.message : error);
    process.exitCode = 1;
  }
}

/** Every so many-th seed, in a process of its own: each is named before it runs, since it may never end. */
async function share(from: number, end: number, every: number): Promise<void> {
  for (let seed = from; seed < end; seed += every) {
    process.send?.(seed);
    await simulate(seed).catch((error: unknown) => {
      console.error(error instanceof SimulationFailure ? error.message : error);
      process.exit(1);
    });
  }
  process.disconnect();
}

async function all(from: number, seeds: number): Promise<void> {
  const started = performance.now();
  const processes = Math.min(availableParallelism(), seeds);
  const children: ChildProcess[] = [];
  const codes = Array.from({ length: processes }, (_, i) => {
    const parameters = ["--from", from + i, "--seeds", from + seeds, "--every", processes].map(String);
    const child = fork(fileURLToPath(import.meta.url), parameters);
    children.push(child);
    return watch(child);
  });
  const failed = await Promise.race([
    Promise.all(codes).then((all) => all.some((code) => code !== 0)),
    // The first failure is enough.
    ...codes.map(async (code) => ((await code) === 0 ? new Promise<never>(() => {}) : true)),
  ]);
  for (const child of children) child.kill();
  const seconds = ((performance.now() - started) / 1_000).toFixed(1);
  if (failed) process.exitCode = 1;
  else console.log(`${seeds} simulations hold, seeds ${from} to ${from + seeds - 1}, in ${seconds} s`);
}

/** Resolves with the exit code of a share, 1 when a simulation of it hangs. */
function watch(child: ChildProcess): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  let timer: NodeJS.Timeout | undefined;
  child.on("message", (seed: number) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      console.error(`seed ${seed} does not end\n\nnpm run simulate -- --seed ${seed}`);
      child.kill("SIGKILL");
    }, HANGING_MS);
  });
  child.on("exit", (code) => {
    clearTimeout(timer);
    resolve(code ?? 1);
  });
  return promise;
}
