/** A deadline that is itself a promise of the service, such as "within 10 s of recovery". */
import { setTimeout as sleep } from "node:timers/promises";
import { durationMs } from "../../src/base/duration.ts";

/** `limit` as in "10 s". What is waited for goes on when it is missed; the process of the test ends it. */
export async function within<T>(limit: `${number} s`, work: Promise<T>): Promise<T> {
  const stop = new AbortController();
  const missed = sleep(durationMs(limit.replace(" ", "")), null, { signal: stop.signal }).then(() => {
    throw new Error(`not within ${limit}`);
  });
  missed.catch(() => {});
  try {
    return await Promise.race([work, missed]);
  } finally {
    stop.abort();
  }
}
