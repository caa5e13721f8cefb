/** Jobs end to end: enqueued by 64 connections, delivered to a target, their answers stored. */
import { setTimeout as pause } from "node:timers/promises";
import { load } from "./load.ts";
import { payload } from "./paced.ts";
import type { Figure } from "./rounds.ts";
import { KEY, type Server } from "./server.ts";

/** The last answers are stored after the target has given them; their CPU counts, the wait for it does not. */
const STORED_AFTER_MS = 300;

/** The rate from the first enqueue to the last arrival, and the CPU of the service, which may be several processes. */
export async function delivered(
  service: Pick<Server, "url" | "cpuSeconds">,
  target: Server,
  count: number,
): Promise<Figure> {
  const body = JSON.stringify({ url: `${target.url}/`, payload });
  await fetch(`${target.url}/reset`);
  const cpu = service.cpuSeconds();
  const begun = performance.now();
  await load({ url: `${service.url}/v1/jobs`, key: KEY, count, body: () => body });
  await fetch(`${target.url}/until/${count}`);
  const seconds = (performance.now() - begun) / 1_000;
  await pause(STORED_AFTER_MS);
  return { perSecond: count / seconds, cpu: ((service.cpuSeconds() - cpu) / count) * 1_000 };
}
