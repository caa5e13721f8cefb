/** Collects the schemas that the API description names once and refers to from wherever they are used. */
import type { JsonSchema } from "../operations/json-schema.ts";

/** Schemas with a title, and those given a name, become components; equal ones become the same. */
export class Components {
  private readonly byText = new Map<string, string>();
  private readonly named: Record<string, JsonSchema> = {};

  /** The schema under a name of its own: the answer refers to it. */
  name(name: string, schema: JsonSchema): JsonSchema {
    const lifted = this.parts(schema);
    const text = JSON.stringify(lifted);
    const known = this.byText.get(text);
    if (known === undefined) {
      if (Object.hasOwn(this.named, name))
        throw new Error(`two schemas of the API description are called ${name}`);
      this.byText.set(text, name);
      this.named[name] = lifted;
    }
    return { $ref: `#/components/schemas/${known ?? name}` };
  }

  /** The schema with a reference in place of every part that is a component. */
  use(schema: JsonSchema): JsonSchema {
    if (schema.title !== undefined) return this.name(schema.title, schema);
    const lifted = this.parts(schema);
    const known = this.byText.get(JSON.stringify(lifted));
    return known === undefined ? lifted : { $ref: `#/components/schemas/${known}` };
  }

  get all(): Readonly<Record<string, JsonSchema>> {
    return this.named;
  }

  private parts(schema: JsonSchema): JsonSchema {
    const { properties, items, anyOf, oneOf, allOf, additionalProperties } = schema;
    const use = (part: JsonSchema) => this.use(part);
    return {
      ...schema,
      ...(properties === undefined ? {} : { properties: mapValues(properties, use) }),
      ...(items === undefined ? {} : { items: use(items) }),
      ...(anyOf === undefined ? {} : { anyOf: anyOf.map(use) }),
      ...(oneOf === undefined ? {} : { oneOf: oneOf.map(use) }),
      ...(allOf === undefined ? {} : { allOf: allOf.map(use) }),
      ...(typeof additionalProperties === "object"
        ? { additionalProperties: use(additionalProperties) }
        : {}),
    };
  }
}

function mapValues<T, U>(record: Readonly<Record<string, T>>, map: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]));
}
