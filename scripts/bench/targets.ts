/** What targets that hang cost the others. */
import { load, percentile } from "./load.ts";
import { paced, payload } from "./paced.ts";
import { say } from "./say.ts";
import { seededFolder } from "./seed.ts";
import { KEY, startErrand, startTarget } from "./server.ts";

/** 100,000 due jobs for a target that hangs, and 50 jobs a second for another. */
export async function hanging(): Promise<void> {
  const [hangs, healthy] = [await startTarget(), await startTarget()];
  const { folder } = await seededFolder({
    count: 100_000,
    job: { url: `${hangs.url}/hang`, payload },
    columns: { due_at: Date.now() - 60_000, run_at: Date.now() - 60_000 },
  });
  const errand = await startErrand({ folder });
  const cpu = errand.cpuSeconds();
  const waits = await paced(errand, healthy, { count: 1_000, everyMs: 20, rootOf: () => healthy.url });
  sayWaits("50 jobs a second beside 100,000 that hang", waits);
  say("CPU of those 20 s", `${(errand.cpuSeconds() - cpu).toFixed(1)} s`);
  await Promise.all([hangs.stop(), healthy.stop()]);
  await errand.stop();
}

/** 1,000 origins that nobody has called before, half of which hang with ten due jobs each. */
export async function origins(): Promise<void> {
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
  sayWaits(
    "first jobs of 500 origins beside 500 dead",
    await paced(errand, healthy, { count: 500, everyMs: 10, rootOf }),
  );
  sayWaits("and then", await paced(errand, healthy, { count: 4_000, everyMs: 10, rootOf }));
  say("CPU of those 45 s", `${(errand.cpuSeconds() - cpu).toFixed(1)} s`);
  await Promise.all([hangs.stop(), healthy.stop()]);
  await errand.stop();
}

/** Origins at which one target is met: the addresses 127.`net`.0.1 and on, since it listens on all of them. */
function rootsOf(url: string, net: number, count: number): string[] {
  const { port } = new URL(url);
  return Array.from(
    { length: count },
    (_, i) => `http://127.${net}.${Math.floor(i / 250)}.${(i % 250) + 1}:${port}`,
  );
}

function sayWaits(what: string, waits: readonly number[]): void {
  say(`${what}: median`, `${percentile(waits, 0.5).toFixed(1)} ms`);
  say(`${what}: p99`, `${percentile(waits, 0.99).toFixed(1)} ms`, "under 100 ms");
}
