/** 10,000 schedules that are due in the same minute. */
import Database from "better-sqlite3";
import { load } from "./load.ts";
import { medians } from "./rounds.ts";
import { say } from "./say.ts";
import { KEY, startErrand, startTarget } from "./server.ts";

const COUNT = 10_000;
const MINUTE_MS = 60_000;
/** As long as it may take to make them. */
const AHEAD_MS = 25_000;

export async function schedules(): Promise<void> {
  const { perSecond, firedMs, deliveredMs, cpu } = await medians(aMinute);
  say("schedules made", `${perSecond.toFixed(0)}/s`);
  say("the last of 10,000 fired", `${firedMs} ms`, "after its time; under 2,000 ms");
  say("the last of 10,000 delivered", `${deliveredMs} ms`, "after its time");
  say("CPU", `${cpu.toFixed(1)} s`);
}

async function aMinute() {
  const [target, errand] = [await startTarget(), await startErrand()];
  const due = new Date(Math.ceil((Date.now() + AHEAD_MS) / MINUTE_MS) * MINUTE_MS);
  const body = JSON.stringify({
    cron_expr: `${due.getUTCMinutes()} ${due.getUTCHours()} * * *`,
    url: `${target.url}/`,
  });
  const { perSecond } = await load({
    url: `${errand.url}/v1/schedules`,
    key: KEY,
    count: COUNT,
    body: () => body,
  });
  if (Date.now() >= due.getTime()) throw new Error("the schedules were due before all of them were made");
  const cpu = errand.cpuSeconds();
  await fetch(`${target.url}/until/${COUNT}`);
  const deliveredMs = Date.now() - due.getTime();
  const figures = {
    perSecond,
    firedMs: lastFiredMs(errand.folder),
    deliveredMs,
    cpu: errand.cpuSeconds() - cpu,
  };
  await Promise.all([errand.stop(), target.stop()]);
  return figures;
}

/** The greatest lateness in the ledger. This is a process of its own, so opening the file here takes no lock away. */
function lastFiredMs(folder: string): number {
  const db = new Database(`${folder}/errand.db`, { readonly: true });
  const last = db.prepare<[], number>("SELECT max(lateness_ms) FROM occurrences").pluck().get() ?? Number.NaN;
  db.close();
  return last;
}
