/** A sender whose HTTP client is loaded with the first attempt, so that the service's first answer need not wait for it. */
import type { Sender } from "./send.ts";

export interface DeferredSender extends Sender {
  /** Loads it now, ahead of the first attempt. */
  load(): Promise<Sender>;
}

export function deferSender(open: () => Promise<Sender>): DeferredSender {
  let opened: Promise<Sender> | null = null;
  const load = () => (opened ??= open());
  return {
    load,
    send: async (request, timeoutMs, signal) => (await load()).send(request, timeoutMs, signal),
    async close() {
      await (await opened)?.close();
    },
  };
}
