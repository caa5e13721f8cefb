/** Jobs one by one at a steady pace, and how long each took from its POST to the first byte at the target. */
import { setTimeout as pause } from "node:timers/promises";
import { load } from "./load.ts";
import { KEY, type Server } from "./server.ts";

export const payload = { text: "x".repeat(489) };

export interface Pace {
  readonly count: number;
  readonly everyMs: number;
  /** Where the n-th job goes: the target's root, whichever of its addresses. */
  readonly rootOf: (n: number) => string;
}

/** The waits in milliseconds, sorted. */
export async function paced(
  errand: Server,
  target: Server,
  { count, everyMs, rootOf }: Pace,
): Promise<number[]> {
  await fetch(`${target.url}/reset`);
  const sent = new Map<string, number>();
  const posts: Promise<unknown>[] = [];
  const begun = performance.now();
  for (let n = 0; n < count; n++) {
    sent.set(String(n), performance.timeOrigin + performance.now());
    posts.push(
      load({
        url: `${errand.url}/v1/jobs`,
        key: KEY,
        count: 1,
        connections: 1,
        body: () => JSON.stringify({ url: `${rootOf(n)}/${n}`, payload }),
      }),
    );
    await pause(Math.max(0, begun + (n + 1) * everyMs - performance.now()));
  }
  await Promise.all(posts);
  await fetch(`${target.url}/until/${count}`);
  const arrivals = (await (await fetch(`${target.url}/arrivals`)).json()) as [string, number][];
  return arrivals.map(([n, at]) => at - (sent.get(n) ?? 0)).toSorted((a, b) => a - b);
}
