/** Makes a tool of each operation that has one: its name, its schemas, and what a client may expect of it. */
import type { Tool as ToolDefinition } from "@modelcontextprotocol/server";
import { jsonSchemaOf } from "../operations/json-schema.ts";
import type { Operation } from "../operations/operation.ts";

export interface Tool {
  readonly operation: Operation;
  /** Input that the tool gives where the caller does not. */
  readonly defaults: Readonly<Record<string, unknown>>;
  /** As clients list it. */
  readonly definition: ToolDefinition;
}

/** The argument of creating tools that stands for REST's `Idempotency-Key`. */
export const IDEMPOTENCY_KEY = "idempotency_key";

const IDEMPOTENCY_KEY_SCHEMA = {
  type: "string",
  minLength: 1,
  maxLength: 255,
  pattern: "^[\\x21-\\x7e]+$",
  description:
    "A word of your own for this call, such as a UUID. A repeat with the same key and arguments makes nothing new and gets the first answer again, for 24 hours.",
};

/** Of what answers with no content by REST: that it was done is all there is to say. */
const NOTHING = { properties: {}, additionalProperties: false };

/** By name, in the order of the operations. */
export function toolsOf(operations: readonly Operation[]): ReadonlyMap<string, Tool> {
  const tools = operations.flatMap((operation) => {
    const { mcp, summary, description } = operation;
    if (mcp === null) return [];
    const text = description === undefined ? `${summary}.` : `${summary}. ${description}`;
    return [
      toolOf(operation, mcp, text, {}),
      ...(operation.moreTools ?? []).map((more) =>
        toolOf(operation, more.name, more.description, more.defaults),
      ),
    ];
  });
  return new Map(tools.map((tool) => [tool.definition.name, tool]));
}

function toolOf(operation: Operation, name: string, description: string, defaults: Tool["defaults"]): Tool {
  const { output, effect, http } = operation;
  return {
    operation,
    defaults,
    definition: {
      name,
      title: titleOf(name),
      description,
      inputSchema: inputSchemaOf(operation, defaults),
      outputSchema: { ...(output === null ? NOTHING : jsonSchemaOf(output)), type: "object" },
      annotations: {
        title: titleOf(name),
        readOnlyHint: effect === "read",
        destructiveHint: effect === "destructive",
        // RFC 9110 §9.2.2 for the methods; what was taken away cannot be taken away again.
        idempotentHint: effect !== "write" || http.method !== "POST",
        // What is written may make Errand call a URL; reading and taking away stay within.
        openWorldHint: effect === "write",
      },
    },
  };
}

function inputSchemaOf(operation: Operation, defaults: Tool["defaults"]): ToolDefinition["inputSchema"] {
  const { properties, ...schema } = jsonSchemaOf(operation.input);
  const fields: Record<string, object> = {};
  for (const [name, field] of Object.entries(properties ?? {})) {
    if (typeof field !== "object") continue;
    fields[name] = Object.hasOwn(defaults, name) ? { ...field, default: defaults[name] } : field;
  }
  if (operation.creates === true) fields[IDEMPOTENCY_KEY] = IDEMPOTENCY_KEY_SCHEMA;
  return { ...schema, type: "object", properties: fields } as ToolDefinition["inputSchema"];
}

/** `create_job` → `Create job`. */
function titleOf(name: string): string {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
