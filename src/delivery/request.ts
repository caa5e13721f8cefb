/** What the target receives: one attempt at a job, a step or a callback, written as an HTTP request. */
import type { Method, Task } from "../jobs/job.ts";
import type { Headers } from "../jobs/outcome.ts";
import { signWebhook } from "./signature.ts";

export interface Delivery {
  readonly jobId: string;
  /** Equal on every retry: the job's id, `<job id>-<step number>`, or the callback's own. */
  readonly messageId: string;
  /** From 1. */
  readonly attempt: number;
  readonly scheduleId: string | null;
  readonly task: Pick<Task, "method" | "url" | "headers">;
  readonly body: string | Uint8Array | null;
  /** What says how to read the body, by names in lower case: a piped body keeps those that it came with. */
  readonly bodyHeaders: Headers;
  /** `whsec_…`, the newest first. */
  readonly secrets: readonly string[];
}

export interface HttpRequest {
  readonly method: Method;
  readonly url: URL;
  /** Name, value, name, value. */
  readonly headers: string[];
  readonly body: string | Uint8Array | null;
}

/** Headers that are Errand's alone. `expect` is left out: the body follows at once, so there is nothing to wait for. */
const NOT_THE_JOBS = /^(?:expect$|errand-|webhook-)/;

/**
 * The request of one attempt. The job's own `user-agent` and `content-type` stand in place of Errand's. A GET never has
 * a body.
 *
 * @param timestampS Unix seconds of this attempt.
 * @param version of Errand.
 */
export function buildRequest(delivery: Delivery, timestampS: number, version: string): HttpRequest {
  const { task, messageId } = delivery;
  const body = task.method === "GET" ? null : delivery.body;
  const headers: string[] = [];
  const own = new Set<string>();
  for (const [name, value] of Object.entries(task.headers)) {
    const lower = name.toLowerCase();
    if (NOT_THE_JOBS.test(lower)) continue;
    own.add(lower);
    // One byte a character goes out, as it was checked and as answers are read (RFC 9110 §5.5).
    headers.push(name, value);
  }
  if (!own.has("user-agent")) headers.push("user-agent", `Errand/${version}`);
  if (body !== null)
    for (const [name, value] of Object.entries(delivery.bodyHeaders))
      if (!own.has(name)) headers.push(name, value);
  headers.push("errand-job-id", delivery.jobId, "errand-attempt", String(delivery.attempt));
  if (delivery.scheduleId !== null) headers.push("errand-schedule-id", delivery.scheduleId);
  headers.push("webhook-id", messageId, "webhook-timestamp", String(timestampS));
  headers.push("webhook-signature", signWebhook(delivery.secrets, messageId, timestampS, body));
  return { method: task.method, url: new URL(task.url), headers, body };
}
