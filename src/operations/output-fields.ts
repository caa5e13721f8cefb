/** What outputs are made of, in the words of JSON Schema; inputs have their fields in fields.ts. */
import * as v from "valibot";
import { METHODS } from "../jobs/job.ts";

export const described = <const T extends v.GenericSchema>(schema: T, text: string) =>
  v.pipe(schema, v.description(text));
/** A schema with a title is described once, under it, in the API reference. */
export const titled = <const T extends v.GenericSchema>(title: string, schema: T) =>
  v.pipe(schema, v.title(title));

export const timeOut = v.pipe(
  v.string(),
  v.description("RFC 3339, UTC, milliseconds."),
  v.metadata({ format: "date-time" }),
);
export const timeOrNull = v.nullable(timeOut);
export const textOrNull = v.nullable(v.string());
export const count = v.pipe(v.number(), v.integer(), v.minValue(0));
export const countOrNull = v.nullable(count);
export const json = v.unknown();
export const method = v.picklist(METHODS);
export const headers = v.record(v.string(), v.string());

/** When an attempt is tried again, and when not. */
export const rules = {
  max_attempts: count,
  timeout: v.string(),
  retry_delays: v.nullable(v.array(v.string())),
  no_retry_on: v.array(v.union([v.number(), v.string()])),
};

/** What a step of a pipeline is to do. */
export const stepWork = {
  url: v.string(),
  method,
  payload: described(json, "Null: the response of the step before."),
  headers,
  ...rules,
  delay: textOrNull,
  requires_approval: v.boolean(),
};

export function pageOf<const T extends v.GenericSchema>(item: T) {
  return v.object({
    data: v.array(item),
    next_cursor: described(textOrNull, "Give it as cursor to get the next page; null on the last one."),
  });
}
