/** Clients that create jobs as fast as they are answered, and remember what was acknowledged. */
import type { TestProcess } from "../support/process.ts";

export interface Load {
  /** The ids of the jobs whose create was answered with 201, in that order. */
  readonly acknowledged: readonly string[];
  /** How often each status was answered. */
  readonly statuses: ReadonlyMap<number, number>;
  /** Resolves when `count` jobs were acknowledged in all, or the service is gone. */
  reached(count: number): Promise<void>;
  /** Lets the requests under way end and begins no others. */
  stop(): Promise<void>;
}

/** A client ends when the service is gone; one that is refused tries again after `pauseMs`. */
export function startLoad(
  service: TestProcess,
  clients: number,
  fields: () => Record<string, unknown>,
  pauseMs = 0,
): Load {
  const acknowledged: string[] = [];
  const statuses = new Map<number, number>();
  const waiters = new Set<{ count: number; resolve: () => void }>();
  const stopping = new AbortController();
  const wake = (isOver: boolean) => {
    for (const waiter of waiters) if (isOver || acknowledged.length >= waiter.count) waiter.resolve();
  };
  const client = async () => {
    while (!stopping.signal.aborted) {
      const answer = await service.call("POST", "/v1/jobs", fields()).catch(() => null);
      if (answer === null) return;
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      if (answer.status === 201) acknowledged.push(answer.body["id"]);
      wake(false);
      if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  };
  const all = Promise.all(Array.from({ length: clients }, client)).then(() => wake(true));
  return {
    acknowledged,
    statuses,
    reached: (count) =>
      new Promise((resolve) => {
        waiters.add({ count, resolve });
        wake(stopping.signal.aborted);
      }),
    async stop() {
      stopping.abort();
      await all;
    },
  };
}

/** Which of the jobs the service does not know. */
export async function missing(service: TestProcess, ids: readonly string[]): Promise<string[]> {
  const known = new Set<string>();
  let cursor: string | null = null;
  do {
    const page: string = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const { status, body } = await service.call("GET", `/v1/jobs?limit=100${page}`);
    if (status !== 200) throw new Error(`the list answered ${status}`);
    for (const { id } of body["data"]) known.add(id);
    cursor = body["next_cursor"];
  } while (cursor !== null);
  return ids.filter((id) => !known.has(id));
}
