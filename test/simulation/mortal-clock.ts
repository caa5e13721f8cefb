/** The clock as one life of the service sees it: what a dead one would be woken for never comes. */
import type { Clock } from "../../src/base/clock.ts";

/** `timers`: how to cancel each of the life's timers that has not rung yet. */
export function mortalClock(clock: Clock, timers: Set<() => void>, isOver: () => boolean): Clock {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    timer: (delayMs, wake) => {
      if (isOver()) return () => {};
      const cancel = clock.timer(delayMs, () => {
        timers.delete(cancel);
        wake();
      });
      timers.add(cancel);
      return () => {
        timers.delete(cancel);
        cancel();
      };
    },
  };
}
