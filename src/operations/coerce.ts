/** What a field takes; and, since query strings and command lines say everything in strings, how those become it. */
import type * as v from "valibot";
import type { InputSchema } from "./operation.ts";

export type FieldKind = "string" | "number" | "boolean" | "array" | "record" | "json";

interface Shape {
  readonly kind: string;
  readonly type: string;
  readonly wrapped?: Shape;
  readonly pipe?: readonly Shape[];
  readonly item?: Shape;
  readonly options?: readonly unknown[];
  readonly description?: string;
}

/** What a field takes, seen through optional, nullable and its checks. */
export function kindOfField(schema: v.GenericSchema): FieldKind {
  return kindOf(core(schema));
}

/** What the items of an array field take. */
export function kindOfItems(schema: v.GenericSchema): FieldKind {
  const { item } = core(schema);
  return item === undefined ? "string" : kindOf(core(item));
}

/** The values that a field is limited to, if it is. */
export function choicesOfField(schema: v.GenericSchema): readonly string[] | null {
  const shape = core(schema);
  const list = shape.type === "array" && shape.item !== undefined ? core(shape.item) : shape;
  return list.type === "picklist" && list.options !== undefined ? list.options.map(String) : null;
}

/** What a field is for, in the words of its schema. */
export function describeField(schema: v.GenericSchema): string {
  return description(schema) ?? "";
}

export function isRequired(schema: v.GenericSchema): boolean {
  return schema.type !== "optional";
}

/** Whether null is a value of the field, which a string cannot say. */
export function isNullable(schema: v.GenericSchema): boolean {
  let shape: Shape | undefined = schema;
  while (shape !== undefined && shape.type !== "nullable") shape = shape.wrapped;
  return shape !== undefined;
}

/**
 * Fields given as strings, each perhaps several times. What cannot be turned stays a string, so that the schema says
 * what is wrong with it; a field that takes one value and came twice stays a list, for the same reason.
 */
export function coerceFields(
  schema: InputSchema,
  given: ReadonlyMap<string, readonly string[]>,
): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const [name, values] of given) {
    const field = Object.hasOwn(schema.entries, name) ? (schema.entries[name] as v.GenericSchema) : undefined;
    Object.defineProperty(fields, name, { value: coerce(field, values), enumerable: true });
  }
  return fields;
}

function coerce(field: v.GenericSchema | undefined, values: readonly string[]): unknown {
  if (field === undefined) return values[0];
  const wanted = kindOfField(field);
  if (wanted === "array") return values.map((value) => scalar(kindOfItems(field), value));
  return values.length === 1 ? scalar(wanted, values[0]!) : values;
}

function scalar(wanted: FieldKind, text: string): unknown {
  if (wanted === "number" && /^-?\d+(\.\d+)?$/.test(text)) return Number(text);
  if (wanted === "boolean" && (text === "true" || text === "false")) return text === "true";
  return text;
}

function core(shape: Shape): Shape {
  if (shape.wrapped !== undefined) return core(shape.wrapped);
  // The last schema of a pipe says what comes out of it.
  const last = shape.pipe?.findLast(({ kind }) => kind === "schema");
  return last === undefined ? shape : core(last);
}

/** The outermost words count: they are about the field, those further in about what it is made of. */
function description(shape: Shape): string | undefined {
  const own = shape.pipe?.findLast(({ type }) => type === "description")?.description;
  if (own !== undefined) return own;
  const inner = shape.wrapped ?? shape.pipe?.[0];
  return inner === undefined ? undefined : description(inner);
}

function kindOf(shape: Shape): FieldKind {
  switch (shape.type) {
    case "number":
    case "boolean":
    case "array":
    case "record":
      return shape.type;
    case "string":
    case "picklist":
      return "string";
    case "union": {
      // A number where the text is one, else the text: `404` and `4xx`.
      const kinds = (shape.options ?? []).map((option) => kindOf(core(option as Shape)));
      return kinds.includes("number") ? "number" : "string";
    }
    default:
      return "json";
  }
}
