/** What a tool answers: the REST API's answer as structured content, or its problem in words that say what to change. */
import type { CallToolResult } from "@modelcontextprotocol/server";
import type { InvalidField } from "../base/errors.ts";
import { JsonCursor, nestsWithin } from "../base/json.ts";
import type { problemDocument } from "../http/problem.ts";
import type { StructuredTexts } from "./structured.ts";

/** An answer of the REST API, or the same thing made in this process. */
export interface Answer {
  readonly status: number;
  readonly body: string;
}

type ProblemDocument = ReturnType<typeof problemDocument>;

export function toolResult({ status, body }: Answer, texts: StructuredTexts): CallToolResult {
  if (status >= 400) return refusal(status, body);
  // An operation without output: there is nothing to say but that it was done.
  if (body === "") return { content: [{ type: "text", text: "Done." }], structuredContent: {} };
  return {
    content: [{ type: "text", text: body }],
    structuredContent: texts.put(new DeepResponses(body).asTexts()),
  };
}

function refusal(status: number, body: string): CallToolResult {
  let problem: ProblemDocument;
  try {
    problem = JSON.parse(body) as ProblemDocument;
  } catch {
    return problemResult(
      "unavailable",
      `What answered with status ${status} is not Errand; check ERRAND_URL.`,
    );
  }
  return problemResult(problem.code, problem.detail, problem.errors, problem.request_id);
}

/** `code: detail`, then each wrong argument with what would be right, then what to quote to whoever runs Errand. */
export function problemResult(
  code: string,
  detail: string,
  errors: readonly InvalidField[] = [],
  requestId?: string,
): CallToolResult {
  const lines = [
    `${code}: ${detail}`,
    ...errors.map((fault) => `- ${fault.pointer} ${fault.detail}`),
    ...(requestId === undefined ? [] : [`request_id: ${requestId}`]),
  ];
  return { isError: true, content: [{ type: "text", text: lines.join("\n") }] };
}

/** What clients go down is as deep as their stack: a few thousand levels at best. */
const MAX_STRUCTURED_DEPTH = 500;

/** The responses in an answer that nest deeper, each put as the text that it is; a payload never does. */
class DeepResponses extends JsonCursor {
  private readonly pieces: string[] = [];
  private done = 0;

  asTexts(): string {
    this.visit();
    return this.pieces.join("") + this.text.slice(this.done);
  }

  private visit(): void {
    const kind = this.kind();
    if (kind === "object") this.members((key) => (key === "response_body" ? this.response() : this.visit()));
    else if (kind === "array") this.items(() => this.visit());
    else this.skip();
  }

  private response(): void {
    const start = this.at;
    this.skip();
    const response = this.text.slice(start, this.at);
    if (nestsWithin(response, MAX_STRUCTURED_DEPTH)) return;
    this.pieces.push(this.text.slice(this.done, start), JSON.stringify(response));
    this.done = this.at;
  }
}
