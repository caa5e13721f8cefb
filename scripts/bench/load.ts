/** Load: a number of connections that call an endpoint as fast as it answers, and what that took. */
import { Agent, request } from "undici";

export interface Load {
  readonly url: string;
  readonly method?: "GET" | "POST";
  readonly key: string;
  /** The body of the n-th request, counted from 0. */
  readonly body?: (n: number) => string;
  readonly count: number;
  readonly connections?: number;
}

export interface LoadResult {
  readonly seconds: number;
  readonly perSecond: number;
  /** Milliseconds of each request, sorted. */
  readonly latenciesMs: readonly number[];
}

export async function load({
  url,
  method = "POST",
  key,
  body,
  count,
  connections = 64,
}: Load): Promise<LoadResult> {
  const dispatcher = new Agent({ connections, pipelining: 1 });
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const latenciesMs: number[] = [];
  let next = 0;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (next < count) {
        const n = next++;
        const sent = performance.now();
        const response = await request(url, { method, dispatcher, headers, body: body?.(n) ?? null });
        const text = await response.body.text();
        if (response.statusCode >= 300) throw new Error(`${url} answered ${response.statusCode}: ${text}`);
        latenciesMs.push(performance.now() - sent);
      }
    }),
  );
  const seconds = (performance.now() - started) / 1_000;
  await dispatcher.close();
  return { seconds, perSecond: count / seconds, latenciesMs: latenciesMs.toSorted((a, b) => a - b) };
}

export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return percentile(
    values.toSorted((a, b) => a - b),
    0.5,
  );
}
