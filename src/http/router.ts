/** The router: paths without parameters, where a queue's load arrives, are looked up once and remembered. */
import type { Result, Router } from "hono/router";
import { TrieRouter } from "hono/router/trie-router";

/**
 * Hono's fastest router cannot tell `/v1/jobs/batch` from `/v1/jobs/{id}`, and the one that can searches its tree for
 * every request. What it finds for a path without parameters is always the same, so that part is kept: at most one entry
 * for each such path and method that was asked for.
 */
export class FixedPathRouter<T> implements Router<T> {
  readonly name = "FixedPathRouter";
  private readonly tree = new TrieRouter<T>();
  private readonly fixed = new Map<string, Map<string, Result<T>>>();

  add(method: string, path: string, handler: T): void {
    this.tree.add(method, path, handler);
    for (const known of this.fixed.values()) known.clear();
    if (!/[:*]/.test(path)) this.fixed.set(path, new Map());
  }

  match(method: string, path: string): Result<T> {
    const known = this.fixed.get(path);
    if (known === undefined || !METHODS.has(method)) return this.tree.match(method, path);
    const result = known.get(method) ?? this.tree.match(method, path);
    known.set(method, result);
    return result;
  }
}

/** Only these are remembered: a client can invent methods without end. */
const METHODS: ReadonlySet<string> = new Set(["GET", "POST", "PUT", "PATCH", "DELETE"]);
