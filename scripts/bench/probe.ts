/** How fast /livez answers while something else goes on: what the loop was held up. */
import { setTimeout as pause } from "node:timers/promises";
import { request } from "undici";
import type { Server } from "./server.ts";

const EVERY_MS = 5;

/** The answer times of /livez in milliseconds, sorted, beside what the work came to. */
export async function probing<T>(
  server: Server,
  work: () => Promise<T>,
): Promise<{ result: T; livezMs: number[] }> {
  const livezMs: number[] = [];
  const state = { isOver: false };
  const running = work().finally(() => (state.isOver = true));
  // Its failure is told below; until then nobody listens.
  running.catch(() => {});
  while (!state.isOver) {
    const asked = performance.now();
    const { body } = await request(`${server.url}/livez`);
    await body.dump();
    livezMs.push(performance.now() - asked);
    await pause(EVERY_MS);
  }
  return { result: await running, livezMs: livezMs.toSorted((a, b) => a - b) };
}
