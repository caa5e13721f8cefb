/** Durable enqueues with deliveries going on, when each sync of the disk takes 5 ms longer. */
import { fileURLToPath } from "node:url";
import { load, median, percentile } from "./load.ts";
import { payload } from "./paced.ts";
import { probing } from "./probe.ts";
import { ROUNDS } from "./rounds.ts";
import { say } from "./say.ts";
import { BUNDLE_COMMAND, KEY, type Server, startErrand, startTarget } from "./server.ts";

const COUNT = 20_000;
const SLOWER_MS = 5;

export async function slow_sync(): Promise<void> {
  const preload = fileURLToPath(new URL("./slow-sync.cjs", import.meta.url));
  const [node, ...bundle] = BUNDLE_COMMAND;
  const target = await startTarget();
  const errand = await startErrand({ command: [node!, "--require", preload, ...bundle] });
  const body = JSON.stringify({ url: `${target.url}/`, payload });
  const arrivals = async () => Number(await (await fetch(`${target.url}/count`)).text());
  let sent = 0;

  const round = async () => {
    const before = { arrivals: await arrivals(), cpu: errand.cpuSeconds() };
    const { result, livezMs } = await probing(errand, async () => {
      const { seconds, perSecond } = await load({
        url: `${errand.url}/v1/jobs`,
        key: KEY,
        count: COUNT,
        body: () => body,
      });
      return { enqueued: perSecond, delivered: ((await arrivals()) - before.arrivals) / seconds };
    });
    sent += COUNT;
    // What is left over is delivered before the next round begins, and its CPU belongs to this one.
    await fetch(`${target.url}/until/${sent}`);
    return {
      ...result,
      cpu: ((errand.cpuSeconds() - before.cpu) / COUNT) * 1_000,
      livezMs: percentile(livezMs, 0.99),
    };
  };

  await round();
  const rounds: Awaited<ReturnType<typeof round>>[] = [];
  for (let i = 0; i < ROUNDS; i++) rounds.push(await round());
  const of = (pick: (one: (typeof rounds)[number]) => number) => median(rounds.map(pick));
  const syncMs = await meanSyncMs(errand);
  if (!(syncMs >= SLOWER_MS)) throw new Error(`a sync took ${syncMs} ms: they were not made slower`);
  say("a sync", `${syncMs.toFixed(1)} ms`, "on average, as /metrics has it");
  say("enqueued, durable", `${of((one) => one.enqueued).toFixed(0)}/s`, "at least 4,000/s");
  say("delivered meanwhile", `${of((one) => one.delivered).toFixed(0)}/s`);
  say("CPU", `${of((one) => one.cpu).toFixed(3)} s`, "per 1,000 jobs");
  say("/livez meanwhile: p99", `${of((one) => one.livezMs).toFixed(1)} ms`, "under 25 ms");
  await Promise.all([errand.stop(), target.stop()]);
}

/** The proof that the preloaded file does what it is for: Errand's own figure. */
async function meanSyncMs(errand: Server): Promise<number> {
  const text = await (await fetch(`${errand.url}/metrics`)).text();
  const figure = (name: string) =>
    Number(new RegExp(`^errand_store_sync_duration_seconds_${name} (\\S+)$`, "m").exec(text)?.[1]);
  return (figure("sum") / figure("count")) * 1_000;
}
