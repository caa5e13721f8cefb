/** Checks input against an operation's schema, and says everything that is wrong with it. */
import * as v from "valibot";
import { type InvalidField, Problem, type ProblemCode } from "../base/errors.ts";
import { RawJson } from "../base/json.ts";
import type { InputSchema, Operation } from "./operation.ts";

/** Faults in these fields have codes of their own, when they are all there is. */
const CODES: ReadonlyMap<unknown, ProblemCode> = new Map([
  ["url", "invalid_url"],
  ["callback_url", "invalid_url"],
  ["cron_expr", "invalid_cron"],
  ["timezone", "invalid_timezone"],
]);

interface Fault extends InvalidField {
  readonly code: ProblemCode;
}

/**
 * Of an input that holds more values than this, a batch of a thousand jobs with twenty fields each, only the first
 * fault is told: to find and list hundreds of thousands of them takes seconds, in which nobody else is served.
 */
const MAX_LISTED = 20_000;

/** The checked input. Throws a 422 Problem that lists every fault. */
export function checkInput(operation: Operation, input: unknown): v.InferOutput<InputSchema> {
  const isHuge = count(input, MAX_LISTED) > MAX_LISTED;
  const result = v.safeParse(operation.input, input, { abortEarly: isHuge, abortPipeEarly: true });
  if (isHuge && !result.success) throw firstOfMany(result.issues);
  const faults: Fault[] = result.success ? [] : result.issues.map(faultOf);
  if (operation.check !== undefined && isObject(input)) {
    for (const field of operation.check(input)) faults.push({ ...field, code: "invalid_request" });
  }
  if (faults.length > 0) throw invalid(faults);
  return result.output as v.InferOutput<InputSchema>;
}

/** A 422 Problem for faults that show only beside what is stored. */
export function invalidFields(faults: readonly InvalidField[]): Problem {
  return invalid(faults.map((field) => ({ ...field, code: "invalid_request" })));
}

function firstOfMany([issue]: readonly [v.BaseIssue<unknown>, ...unknown[]]): Problem {
  const { code, pointer, detail } = faultOf(issue);
  const more = `There may be more: only the first is told of a request of over ${MAX_LISTED} values.`;
  return new Problem(code, `${sentence({ pointer, detail })} ${more}`, { errors: [{ pointer, detail }] });
}

/** How many values an input holds; not counted much beyond `enough`. */
function count(input: unknown, enough: number): number {
  if (typeof input !== "object" || input === null || input instanceof RawJson) return 1;
  let sum = 1;
  for (const value of Array.isArray(input) ? input : Object.values(input)) {
    sum += count(value, enough - sum);
    if (sum > enough) break;
  }
  return sum;
}

/** One Problem for many faults: their common code if they have one. */
function invalid(faults: readonly Fault[]): Problem {
  const first = faults[0]!;
  const code = faults.every((fault) => fault.code === first.code) ? first.code : "invalid_request";
  const more = faults.length > 1 ? ` (and ${faults.length - 1} more: see errors)` : "";
  const errors = faults.map(({ pointer, detail }) => ({ pointer, detail }));
  return new Problem(code, `${sentence(first)}${more}`, { errors });
}

/** The fault as one sentence: most details go on where the field's name ends, those of a cron expression are whole. */
export function sentence({ pointer, detail }: InvalidField): string {
  const name = pointer === "" ? "The request" : pointer.slice(1).replaceAll("/", ".");
  const text = /^[A-Z]/.test(detail) ? `${name}: ${detail}` : `${name} ${detail}`;
  return /[.?]$/.test(text) ? text : `${text}.`;
}

function faultOf(issue: v.BaseIssue<unknown>): Fault {
  const path = (issue.path ?? []).map((item) => String(item.key));
  const pointer = path.map((key) => `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
  // A header may be called as one of the fields is.
  const isField = path.at(-2) !== "headers";
  const ownCode = isField && issue.kind === "validation" ? CODES.get(path.at(-1)) : undefined;
  return { pointer, detail: detailOf(issue, path.at(-1)), code: ownCode ?? "invalid_request" };
}

function detailOf(issue: v.BaseIssue<unknown>, key: string | undefined): string {
  if (issue.type === "strict_object" && issue.expected === "never") return "is not a field of this request";
  if (issue.type === "strict_object" && key !== undefined && issue.expected !== "Object")
    return "is required";
  if (issue.type === "instance") return "has to be a JSON value";
  // A query parameter or an option that came more than once arrives as a list.
  if (TAKING_ONE.has(issue.type) && Array.isArray(issue.input) && issue.input.length > 1)
    return `is given ${issue.input.length} values, and takes only one`;
  const isOwnMessage = !issue.message.startsWith("Invalid ");
  if (isOwnMessage) return issue.message;
  if (issue.input === undefined) return "is required";
  return `has to be ${expected(issue)}, not ${kindOf(issue.input)}`;
}

const TAKING_ONE: ReadonlySet<string> = new Set(["string", "number", "boolean", "picklist"]);

const ARTICLES: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  boolean: "true or false",
  Array: "an array",
  Object: "an object",
};

function expected(issue: v.BaseIssue<unknown>): string {
  const names = issue.expected ?? "something else";
  return ARTICLES[names] ?? names.replaceAll(" | ", " or ").replace(/^\((.*)\)$/, "$1");
}

function kindOf(input: unknown): string {
  if (input === null) return "null";
  if (Array.isArray(input)) return "an array";
  if (input instanceof RawJson) return "this value";
  switch (typeof input) {
    case "string":
      return input.length <= 40 ? JSON.stringify(input) : "this string";
    case "number":
    case "boolean":
      return String(input);
    case "object":
      return "an object";
    default:
      return `a ${typeof input}`;
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
