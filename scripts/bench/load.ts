/** Load: a number of connections that call an endpoint as fast as it answers, and what that took. */
import { Caller, requestBytes } from "./caller.ts";

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
  const to = new URL(url);
  const bytes = (n: number) => requestBytes(method, to, key, body?.(n) ?? null);
  const latenciesMs: number[] = [];
  let next = 0;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const caller = new Caller(to);
      while (next < count) {
        const request = bytes(next++);
        const sent = performance.now();
        const { status, text } = await caller.call(request);
        if (status >= 300) throw new Error(`${url} answered ${status}: ${text}`);
        latenciesMs.push(performance.now() - sent);
      }
      caller.close();
    }),
  );
  const seconds = (performance.now() - started) / 1_000;
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
