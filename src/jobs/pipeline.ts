/** What a step of a pipeline sends: its own payload with references filled in, or the response of the step before. */
import type { RawJson } from "../base/json.ts";
import type { Step, StoredResponse } from "./job.ts";

export interface StepBody {
  readonly body: string | Uint8Array | null;
  readonly contentType: string | null;
}

export interface UnresolvedReference {
  /** A sentence that names the reference. */
  readonly unresolved: string;
}

/**
 * The body of a step. Without a payload it is the previous step's response, bytes and content type as they came; the
 * first step gets the pipeline's input. GET sends none.
 */
export function stepBody(
  step: Step,
  input: RawJson | null,
  results: ReadonlyMap<string, StoredResponse>,
): StepBody | UnresolvedReference {
  if (step.method === "GET") return { body: null, contentType: null };
  if (step.payload !== null) return { body: step.payload.text, contentType: "application/json" };
  const previous = [...results.values()].at(-1);
  if (previous === undefined)
    return input === null ? NO_BODY : { body: input.text, contentType: "application/json" };
  if (previous.body.length === 0) return NO_BODY;
  return { body: previous.body, contentType: previous.headers["content-type"] ?? null };
}

const NO_BODY: StepBody = { body: null, contentType: null };
