/** Checks input against an operation's schema, and says everything that is wrong with it. */
import * as v from "valibot";
import { type InvalidField, Problem, type ProblemCode } from "../base/errors.ts";
import { RawJson } from "../base/json.ts";
import type { InputSchema, Operation } from "./operation.ts";

/** Faults in these fields have codes of their own, when they are all there is. */
const CODES: Readonly<Record<string, ProblemCode>> = {
  url: "invalid_url",
  callback_url: "invalid_url",
  cron_expr: "invalid_cron",
  timezone: "invalid_timezone",
};

interface Fault extends InvalidField {
  readonly code: ProblemCode;
}

/** The checked input. Throws a 422 Problem that lists every fault. */
export function checkInput(operation: Operation, input: unknown): v.InferOutput<InputSchema> {
  const result = v.safeParse(operation.input, input);
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

/** One Problem for many faults: their common code if they have one. */
function invalid(faults: readonly Fault[]): Problem {
  const first = faults[0]!;
  const code = faults.every((fault) => fault.code === first.code) ? first.code : "invalid_request";
  const more = faults.length > 1 ? ` (and ${faults.length - 1} more: see errors)` : "";
  const errors = faults.map(({ pointer, detail }) => ({ pointer, detail }));
  return new Problem(code, `${sentence(first)}${more}`, { errors });
}

/** The fault as one sentence: most details go on where the field's name ends, those of a cron expression are whole. */
function sentence({ pointer, detail }: InvalidField): string {
  const name = pointer === "" ? "The request" : pointer.slice(1).replaceAll("/", ".");
  const text = /^[A-Z]/.test(detail) ? `${name}: ${detail}` : `${name} ${detail}`;
  return text.endsWith(".") ? text : `${text}.`;
}

function faultOf(issue: v.BaseIssue<unknown>): Fault {
  const path = (issue.path ?? []).map((item) => String(item.key));
  const pointer = path.map((key) => `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
  const ownCode = issue.kind === "validation" ? CODES[path.at(-1) ?? ""] : undefined;
  return { pointer, detail: detailOf(issue, path.at(-1)), code: ownCode ?? "invalid_request" };
}

function detailOf(issue: v.BaseIssue<unknown>, key: string | undefined): string {
  if (issue.type === "strict_object" && issue.expected === "never") return "is not a field of this request";
  if (issue.type === "strict_object" && key !== undefined && issue.expected !== "Object")
    return "is required";
  if (issue.type === "instance") return "has to be a JSON value";
  const isOwnMessage = !issue.message.startsWith("Invalid ");
  if (isOwnMessage) return issue.message;
  if (issue.input === undefined) return "is required";
  return `has to be ${expected(issue)}, not ${kindOf(issue.input)}`;
}

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

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
