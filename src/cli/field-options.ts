/** The fields of an operation as options of its command, and the options given as input of the operation. */

import { Option } from "commander";
import type * as v from "valibot";
import {
  choicesOfField,
  coerceFields,
  describeField,
  isNullable,
  isRequired,
  kindOfField,
  kindOfItems,
} from "../operations/coerce.ts";
import type { Operation } from "../operations/operation.ts";
import { jsonArgument } from "./json-argument.ts";
import { UsageFault } from "./output.ts";
import type { Terminal } from "./terminal.ts";

/** `max_attempts` → `max-attempts`. */
function kebab(name: string): string {
  return name.replaceAll("_", "-");
}

/** An option for every field that is not given by its position. */
export function fieldOptions(operation: Operation): Option[] {
  return namedFields(operation).flatMap(([name, field]) => optionsOf(name, field));
}

function optionsOf(name: string, field: v.GenericSchema): Option[] {
  const flag = kebab(name);
  const help = [describeField(field), isRequired(field) ? "(required)" : ""].filter(Boolean).join(" ");
  if (kindOfField(field) === "boolean") {
    const no = new Option(`--no-${flag}`).hideHelp();
    return [new Option(`--${flag}`, help), no];
  }
  const option = new Option(`${flagsOf(flag, field)} <${valueName(field)}>`, help);
  // `--no-retry-on` is the field no_retry_on, and takes back no `--retry-on`.
  option.negate = false;
  option.argParser((value: string, previous: string[] | undefined) => [...(previous ?? []), value]);
  const choices = choicesOfField(field);
  if (choices !== null) option.argChoices = [...choices];
  return [option];
}

/** A header is given one at a time, so both `--header` and the field's own `--headers` are right. */
function flagsOf(flag: string, field: v.GenericSchema): string {
  return kindOfField(field) === "record" ? `--${flag.replace(/s$/, "")}, --${flag}` : `--${flag}`;
}

function valueName(field: v.GenericSchema): string {
  const kind = kindOfField(field);
  if (kind === "record") return "name:value";
  if (kind === "array") return kindOfItems(field) === "json" ? "json" : "list";
  return kind === "string" ? "text" : kind;
}

/** `values` are the options by their names in commander, `positional` the arguments in order. */
export async function inputOf(
  operation: Operation,
  positional: readonly (string | undefined)[],
  values: Readonly<Record<string, unknown>>,
  terminal: Terminal,
): Promise<Record<string, unknown>> {
  const texts = new Map<string, readonly string[]>();
  const input: Record<string, unknown> = {};
  (operation.cli?.positional ?? []).forEach((name, i) => {
    const given = positional[i];
    if (given !== undefined) texts.set(name, [given]);
  });
  for (const [name, field] of namedFields(operation)) {
    const given = values[attributeOf(name)];
    if (typeof given === "boolean") input[name] = given;
    if (!Array.isArray(given)) continue;
    const value = await valueOf(name, field, given as string[], terminal);
    if (value instanceof Texts) texts.set(name, value.list);
    else input[name] = value;
  }
  return { ...coerceFields(operation.input, texts), ...input };
}

/** Strings that the schema-driven coercer is to read, as it reads those of a query. */
class Texts {
  readonly list: readonly string[];
  constructor(list: readonly string[]) {
    this.list = list;
  }
}

async function valueOf(
  name: string,
  field: v.GenericSchema,
  given: readonly string[],
  terminal: Terminal,
): Promise<unknown> {
  const flag = `--${kebab(name)}`;
  const [first = ""] = given;
  const kind = kindOfField(field);
  if (isNullable(field) && given.length === 1 && first === "null") return null;
  // No header begins so (RFC 9110 §5.1): it is the field as the API has it, and {} the only way to say none.
  if (kind === "record" && given.length === 1 && /^(?:[{@]|-$)/.test(first))
    return jsonArgument(flag, first, terminal);
  if (kind === "record") return headersOf(given);
  const isJson = kind === "json" || (kind === "array" && kindOfItems(field) === "json");
  if (given.length > 1 && (isJson || kind !== "array"))
    throw new UsageFault(`${flag} is given ${given.length} times; give it once`);
  if (isJson) return jsonArgument(flag, first, terminal);
  if (kind !== "array") return new Texts(given);
  // A comma parts values; one that holds a comma can be said as JSON.
  if (first.startsWith("[") && given.length === 1) return jsonArgument(flag, first, terminal);
  return new Texts(given.flatMap((one) => one.split(",")).map((one) => one.trim()));
}

function headersOf(given: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of given) {
    const colon = line.indexOf(":");
    // The line may hold a secret, so it is not repeated.
    if (colon < 1) throw new UsageFault(`--header has to be name:value, as in --header "x-kind: test"`);
    const name = line.slice(0, colon).trim();
    if (Object.hasOwn(headers, name)) throw new UsageFault(`--header ${name} is given twice`);
    Object.defineProperty(headers, name, { value: line.slice(colon + 1).trim(), enumerable: true });
  }
  return headers;
}

function namedFields(operation: Operation): [string, v.GenericSchema][] {
  const positional = operation.cli?.positional ?? [];
  const fields = Object.entries(operation.input.entries) as [string, v.GenericSchema][];
  return fields.filter(([name]) => !positional.includes(name));
}

/** As commander calls the value of `--max-attempts`: `maxAttempts`. */
function attributeOf(name: string): string {
  return name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}
