/** The JSON Schemas (draft 2020-12) of what operations take and answer: for the API reference and for agents. */
import { toJsonSchema } from "@valibot/to-json-schema";
import type { GenericSchema } from "valibot";

/** The keywords of JSON Schema that Errand's schemas are made of. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly title?: string;
  readonly description?: string;
  readonly examples?: readonly unknown[];
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly pattern?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
}

/**
 * Throws for a schema that JSON Schema cannot say. Checks by code are left out: their rule is in the description, and a
 * request that breaks it is answered with 422.
 */
export function jsonSchemaOf(schema: GenericSchema): JsonSchema {
  const { $schema: _, ...rest } = toJsonSchema(schema, {
    target: "draft-2020-12",
    errorMode: "throw",
    // Of a list whose length is looked at before its items, the items.
    typeMode: "output",
    ignoreActions: ["check", "raw_check"],
    // A RawJson is any JSON value whose bytes are kept.
    overrideSchema: ({ valibotSchema }) => (valibotSchema.type === "instance" ? {} : undefined),
  });
  return rest as JsonSchema;
}
