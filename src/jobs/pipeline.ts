/** What a step of a pipeline sends: its own payload with references filled in, or the response of the step before. */
import { RawJson } from "../base/json.ts";
import { isJson } from "../base/json-check.ts";
import { utf8Text } from "../base/utf8.ts";
import type { Step, StoredResponse } from "./job.ts";
import type { Headers } from "./outcome.ts";
import { fillIn, INPUT, nameOf, namesReferredTo, type SourceText } from "./references.ts";

/** A body and the headers that say what it is. */
export interface Body {
  readonly body: string | Uint8Array | null;
  readonly bodyHeaders: Headers;
}

export interface UnresolvedReference {
  /** A sentence that names the reference. */
  readonly unresolved: string;
}

/** The response of each earlier step that is needed, by the step's name. */
export type Results = ReadonlyMap<string, StoredResponse>;

/** Which earlier steps' responses the body of a step is made of. `previous` is the step before it. */
export function sourcesOf(step: Pick<Step, "method" | "payload">, previous: string | null): Set<string> {
  if (step.method === "GET") return new Set();
  if (step.payload !== null) return namesReferredTo(step.payload);
  return new Set(previous === null ? [] : [previous]);
}

/**
 * The body of a step. Without a payload it is the response of the step before, in bytes, content type and coding as it
 * came; the first step gets the pipeline's input. GET sends none. A response that was cut to what is kept is not passed
 * on, in whole or in part: its rest would be missed without a word.
 */
export function stepBody(
  step: Pick<Step, "method" | "payload">,
  previous: string | null,
  input: RawJson | null,
  results: Results,
): Body | UnresolvedReference {
  if (step.method === "GET") return NO_BODY;
  if (step.payload !== null) {
    const filled = fillIn(step.payload, (source) => sourceText(source, input, results));
    return "unresolved" in filled ? filled : jsonBody(new RawJson(filled.text));
  }
  return previous === null ? jsonBody(input) : pipedBody(previous, results);
}

export function jsonBody(payload: RawJson | null): Body {
  return payload === null ? NO_BODY : { body: payload.text, bodyHeaders: JSON_HEADERS };
}

function pipedBody(previous: string, results: Results): Body | UnresolvedReference {
  const response = results.get(previous);
  if (response === undefined || response.body.length === 0) return NO_BODY;
  if (response.truncated)
    return {
      unresolved: `The body of this step is ${nameOf(previous)}, which was longer than the 1 MiB that is kept.`,
    };
  const bodyHeaders = PIPED_HEADERS.flatMap((name) => {
    const value = response.headers[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return { body: response.body, bodyHeaders: Object.fromEntries(bodyHeaders) };
}

/** The text that references look through. A body counts as JSON by what it is, whatever its content type says. */
function sourceText(source: string, input: RawJson | null, results: Results): SourceText {
  if (source === INPUT)
    return input === null ? { missing: "finds nothing: the pipeline has no input" } : { text: input.text };
  const response = results.get(source);
  if (response === undefined || response.body.length === 0)
    return { missing: `finds nothing: ${nameOf(source)} is empty` };
  if (response.truncated)
    return { missing: `cannot be followed: ${nameOf(source)} was longer than the 1 MiB that is kept` };
  const text = utf8Text(response.body);
  return text !== null && isJson(text)
    ? { text }
    : { missing: `cannot be followed: ${nameOf(source)} is not JSON` };
}

const JSON_HEADERS: Headers = { "content-type": "application/json" };
/** What says how the bytes of a body are to be read (RFC 9110 §8.3, §8.4): it goes with them. */
const PIPED_HEADERS = ["content-type", "content-encoding"];
const NO_BODY: Body = { body: null, bodyHeaders: {} };
