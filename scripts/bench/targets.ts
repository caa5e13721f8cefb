/** What targets that hang cost the others. */
import { load, percentile } from "./load.ts";
import { paced, payload } from "./paced.ts";
import { medians } from "./rounds.ts";
import { say } from "./say.ts";
import { seededFolder } from "./seed.ts";
import { KEY, type Server, startErrand, startTarget } from "./server.ts";

/** 100,000 due jobs for a target that hangs, and 50 jobs a second for another. */
export async function hanging(): Promise<void> {
  const { half, p99, cpu } = await medians(besideBacklog);
  sayWaits("50 jobs a second beside 100,000 that hang", { half, p99 });
  say("CPU of those 20 s", `${cpu.toFixed(1)} s`);
}

async function besideBacklog() {
  const [hangs, healthy] = [await startTarget(), await startTarget()];
  const { folder } = await seededFolder({
    count: 100_000,
    job: { url: `${hangs.url}/hang`, payload },
    columns: { due_at: Date.now() - 60_000, run_at: Date.now() - 60_000 },
  });
  const errand = await startErrand({ folder });
  const cpu = errand.cpuSeconds();
  const waits = await paced(errand, healthy, { count: 1_000, everyMs: 20, rootOf: () => healthy.url });
  const used = errand.cpuSeconds() - cpu;
  await mustHang(hangs, 1);
  await Promise.all([hangs.stop(), healthy.stop()]);
  await errand.stop();
  return { ...figuresOf(waits), cpu: used };
}

/** 1,000 origins that nobody has called before, half of which hang with ten due jobs each. */
export async function origins(): Promise<void> {
  const { half, p99, thenHalf, thenP99, cpu } = await medians(besideDeadOrigins);
  sayWaits("first jobs of 500 origins beside 500 dead", { half, p99 });
  sayWaits("and then", { half: thenHalf, p99: thenP99 });
  say("CPU of those 45 s", `${cpu.toFixed(1)} s`);
}

async function besideDeadOrigins() {
  const [hangs, healthy] = [await startTarget(), await startTarget()];
  const errand = await startErrand();
  const dead = rootsOf(hangs.url, 1, 500);
  const alive = rootsOf(healthy.url, 2, 500);
  await load({
    url: `${errand.url}/v1/jobs`,
    key: KEY,
    count: 5_000,
    body: (n) => JSON.stringify({ url: `${dead[Math.floor(n / 10)]}/hang`, payload }),
  });
  const cpu = errand.cpuSeconds();
  const rootOf = (n: number) => alive[n % alive.length] ?? "";
  const first = figuresOf(await paced(errand, healthy, { count: 500, everyMs: 10, rootOf }));
  const then = figuresOf(await paced(errand, healthy, { count: 4_000, everyMs: 10, rootOf }));
  const used = errand.cpuSeconds() - cpu;
  await mustHang(hangs, dead.length);
  await Promise.all([hangs.stop(), healthy.stop()]);
  await errand.stop();
  return { ...first, thenHalf: then.half, thenP99: then.p99, cpu: used };
}

/** Beside a target that nobody has called the others are fast in any case. */
async function mustHang(target: Server, atLeast: number): Promise<void> {
  const count = Number(await (await fetch(`${target.url}/hanging`)).text());
  if (!(count >= atLeast)) throw new Error(`${count} requests hang, not ${atLeast} or more`);
}

/** Origins at which one target is met: the addresses 127.`net`.0.1 and on, since it listens on all of them. */
function rootsOf(url: string, net: number, count: number): string[] {
  const { port } = new URL(url);
  return Array.from(
    { length: count },
    (_, i) => `http://127.${net}.${Math.floor(i / 250)}.${(i % 250) + 1}:${port}`,
  );
}

function figuresOf(waits: readonly number[]) {
  return { half: percentile(waits, 0.5), p99: percentile(waits, 0.99) };
}

function sayWaits(what: string, { half, p99 }: ReturnType<typeof figuresOf>): void {
  say(`${what}: median`, `${half.toFixed(1)} ms`);
  say(`${what}: p99`, `${p99.toFixed(1)} ms`, "under 100 ms");
}
