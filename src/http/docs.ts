/** The API reference as one page: made on the server from the API description, with no script and no outside request. */
import type { JsonSchema } from "../operations/json-schema.ts";
import style from "./docs.css";
import { Html, html, inline, paragraphs } from "./html.ts";
import {
  type ApiDescription,
  BODY,
  type DescribedOperation,
  type DescribedResponse,
  type Parameter,
} from "./openapi.ts";

interface Entry {
  readonly method: string;
  readonly path: string;
  readonly operation: DescribedOperation;
}

export const DOCS_STYLE = style;

export function docsPage(api: ApiDescription): string {
  const entries = [...Object.entries(api.paths), ...Object.entries(api.webhooks)].flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
  const groups = [...Map.groupBy(entries, ({ operation }) => operation.tags[0] ?? "")];
  const schemas = Object.entries(api.components.schemas).filter(([name]) => !name.endsWith(BODY));
  const { title, version, summary, description } = api.info;
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} API reference</title>
<style>${new Html(style)}</style>
</head>
<body>
<a class="skip" href="#start">Skip to the reference</a>
<header>
<p class="brand"><a href="#start">${title}</a> <span>${version}</span></p>
<details class="menu"><summary>Contents</summary>${navigation(groups, schemas)}</details>
</header>
<nav class="side" aria-label="Contents">${navigation(groups, schemas)}</nav>
<main id="start">
<section class="intro">
<h1>${title} API</h1>
<p class="lead">${summary}</p>
${paragraphs(description)}
<p>This page is made from <a href="/openapi.json">openapi.json</a>.</p>
</section>
${groups.map(([name, members]) => html`<h2 id="${name}">${name}</h2>${members.map(section)}`)}
<h2 id="schemas">Schemas</h2>
${schemas.map(
  ([name, schema]) =>
    html`<section class="schema" id="schema-${name}"><h3>${name}</h3>${fields(schema, api)}</section>`,
)}
</main>
</body>
</html>
`;
  return page.text;

  function section(entry: Entry): Html {
    const { method, path, operation } = entry;
    const { operationId, summary: line, description: more, parameters = [], requestBody } = operation;
    const [scope] = operation.security.flatMap((one) => Object.values(one).flat());
    const body = requestBody?.content["application/json"];
    return html`<section class="operation" id="${operationId}">
<div class="said">
<h3><a href="#${operationId}">${line}</a></h3>
<p class="route"><b class="method ${method.toLowerCase()}">${method}</b> <code>${pathMarked(path)}</code></p>
${more === undefined ? null : paragraphs(more)}
<p class="scope">${!path.startsWith("/") ? "Sent by Errand." : scope === undefined ? "Needs no key." : html`Needs a key with the scope <code>${scope}</code>.`}</p>
${parameterList("In the path", parameters, "path")}
${parameterList("Query", parameters, "query")}
${parameterList("Headers", parameters, "header")}
${
  body === undefined
    ? null
    : html`<h4>Body${requestBody?.required === false ? html` <small>optional</small>` : null}</h4>${fields(body.schema, api)}`
}
</div>
<div class="shown">
${path.startsWith("/") ? html`<pre tabindex="0" aria-label="Example"><code>${curl(entry, body?.example)}</code></pre>` : null}
<h4>Answers</h4>
<dl class="answers">${Object.entries(operation.responses).map(answer)}</dl>
</div>
</section>
`;
  }
}

function navigation(
  groups: readonly (readonly [string, readonly Entry[]])[],
  schemas: readonly (readonly [string, JsonSchema])[],
): Html {
  return html`${groups.map(
    ([name, entries]) => html`<p><a href="#${name}">${name}</a></p>
<ul>${entries.map(
      ({ method, operation }) =>
        html`<li><a href="#${operation.operationId}"><span>${label(operation)}</span> <b class="method ${method.toLowerCase()}">${method}</b></a></li>`,
    )}</ul>`,
  )}<p><a href="#schemas">Schemas</a></p>
<ul>${schemas.map(([name]) => html`<li><a href="#schema-${name}">${name}</a></li>`)}</ul>`;
}

/** `jobsCreateBatch` among the jobs is `Create batch`. */
function label({ operationId, tags }: DescribedOperation): string {
  const group = tags[0] ?? "";
  const own = operationId.toLowerCase().startsWith(group.toLowerCase())
    ? operationId.slice(group.length)
    : operationId;
  const words = own.replaceAll(/\B[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}

function pathMarked(path: string): Html[] {
  return path.split(/(\{\w+\})/).map((part, i) => (i % 2 === 1 ? html`<i>${part}</i>` : html`${part}`));
}

function parameterList(
  heading: string,
  parameters: readonly Parameter[],
  place: Parameter["in"],
): Html | null {
  const here = parameters.filter((parameter) => parameter.in === place);
  if (here.length === 0) return null;
  return html`<h4>${heading}</h4><dl class="fields">${here.map(({ name, schema, description, required }) =>
    field(
      name,
      { ...schema, ...(description === undefined ? {} : { description }) },
      required === true,
      null,
    ),
  )}</dl>`;
}

/** The fields of an object, those inside them included; the alternatives of a choice; else the type. */
function fields(schema: JsonSchema, api: ApiDescription): Html {
  const resolved = resolve(schema, api);
  if (resolved.oneOf !== undefined)
    return html`${resolved.oneOf.map((one) => html`<div class="choice">${fields(one, api)}</div>`)}`;
  const { properties = {}, required = [] } = resolved;
  const entries = Object.entries(properties);
  if (entries.length === 0) return html`<p class="type">${typeOf(resolved)}</p>`;
  return html`<dl class="fields">${entries.map(([name, part]) => field(name, part, required.includes(name), api))}</dl>`;
}

/** Bodies are shown where they are used; named schemas have a place of their own, and are linked. */
function resolve(schema: JsonSchema, api: ApiDescription): JsonSchema {
  const name = schema.$ref?.split("/").at(-1);
  return name === undefined ? schema : (api.components.schemas[name] ?? schema);
}

function field(name: string, schema: JsonSchema, required: boolean, api: ApiDescription | null): Html {
  const inner = [schema, schema.items, ...(schema.anyOf ?? [])].find(
    (part) => part?.properties !== undefined,
  );
  const { examples, description } = schema;
  const example = examples?.[0];
  return html`<div><dt><code>${name}</code> <span class="type">${typeOf(schema)}</span>${
    required ? html` <em>required</em>` : null
  }</dt><dd>${description === undefined ? null : inline(description)}${limits(schema)}${
    typeof example === "string" ? html` <span class="eg">e.g. <code>${example}</code></span>` : null
  }${inner === undefined || api === null ? null : fields(inner, api)}</dd></div>`;
}

function typeOf(schema: JsonSchema): Html {
  const { $ref, enum: values, items, anyOf, type, format, additionalProperties } = schema;
  if ($ref !== undefined) {
    const name = $ref.split("/").at(-1) ?? "";
    return html`<a href="#${placeOf(name)}">${name}</a>`;
  }
  if (schema.const !== undefined) return html`<code>${JSON.stringify(schema.const)}</code>`;
  if (values !== undefined)
    return html`${values.map((value, i) => html`${i === 0 ? "" : " | "}<code>${String(value)}</code>`)}`;
  if (anyOf !== undefined)
    return html`${anyOf.map((one, i) => html`${i === 0 ? "" : " or "}${typeOf(one)}`)}`;
  if (items !== undefined) return html`array of ${typeOf(items)}`;
  if (typeof additionalProperties === "object") return html`object of ${typeOf(additionalProperties)}`;
  if (format === "date-time") return html`time`;
  if (format === "uri") return html`URL`;
  return html`${type === undefined ? "any JSON" : String(type)}`;
}

/** A body stands with its operation, every other schema by itself. */
function placeOf(name: string): string {
  if (!name.endsWith(BODY)) return `schema-${name}`;
  return name.slice(0, 1).toLowerCase() + name.slice(1, -BODY.length);
}

function limits({ minimum, maximum, minLength, maxLength, minItems, maxItems }: JsonSchema): Html | null {
  const [low, high, unit] =
    (minimum ?? maximum) !== undefined
      ? [minimum, maximum, ""]
      : (minLength ?? maxLength) !== undefined
        ? [minLength, maxLength, " characters"]
        : [minItems, maxItems, " items"];
  if (high === undefined) return null;
  const range =
    low === undefined ? `up to ${high.toLocaleString("en")}` : `${low} to ${high.toLocaleString("en")}`;
  return html` <span class="limits">${range}${unit}</span>`;
}

function answer([status, { description, content }]: [string, DescribedResponse]): Html {
  const [first] = Object.values(content ?? {});
  const schema = first === undefined || status >= "400" ? null : (first["x-itemSchema"] ?? first.schema);
  return html`<div><dt class="s${status[0] ?? ""}">${status}</dt><dd>${
    schema === null ? null : html`<p>${answerType(schema)}</p>`
  }${paragraphs(description)}</dd></div>`;
}

/** A named schema, a page of one, or the fields of a small answer. */
function answerType(schema: JsonSchema): Html {
  const item = schema.properties?.["data"]?.items;
  if (item?.$ref !== undefined) return html`A list of ${typeOf(item)}`;
  if (schema.properties === undefined) return typeOf(schema);
  return html`${Object.keys(schema.properties).map((name, i) => html`${i === 0 ? "" : ", "}<code>${name}</code>`)}`;
}

function curl({ method, path, operation }: Entry, example: unknown): string {
  const url = `"$ERRAND_URL${path.replace("{id}", "$ID").replace("{name}", "$NAME")}"`;
  const streams = Object.values(operation.responses).some(
    ({ content }) => content?.["text/event-stream"] !== undefined,
  );
  const parts = [
    `curl${streams ? " -N" : ""}${method === "GET" || example !== undefined ? "" : ` -X ${method}`} ${url}`,
  ];
  if (operation.security.length > 0) parts.push(`-H "Authorization: Bearer $ERRAND_API_KEY"`);
  if (example === undefined) return parts.join(" \\\n  ");
  if (method !== "POST") parts[0] = `curl -X ${method} ${url}`;
  const body = JSON.stringify(example, null, 2).replaceAll("'", `'\\''`);
  return [...parts, `-H "Content-Type: application/json"`, `-d '${body}'`].join(" \\\n  ");
}
