/** The MCP server: lists the tools and calls them. How messages come and who does the work is its callers' business. */
import { McpServer, ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import { Problem } from "../base/errors.ts";
import { IDEMPOTENCY_KEY_FORM, isIdempotencyKey } from "../operations/call.ts";
import type { Operation } from "../operations/operation.ts";
import { VERSION } from "../version.ts";
import { type Answer, problemResult, toolResult } from "./result.ts";
import type { StructuredTexts } from "./structured.ts";
import { IDEMPOTENCY_KEY, type Tool } from "./tools.ts";

export interface ToolCall {
  readonly operation: Operation;
  readonly input: Readonly<Record<string, unknown>>;
  readonly idempotencyKey: string | null;
  /** Aborted when the client is gone or has cancelled the call. */
  readonly signal: AbortSignal;
}

/** Calls an operation. A refusal is an answer, too, as in the REST API, or a thrown Problem. */
export type CallOperation = (call: ToolCall) => Promise<Answer>;

const INSTRUCTIONS = `Errand makes HTTP requests for you, now or later, and retries them until they worked.
create_job enqueues one; wait_for_job or get_job tells how it went; get_job_attempts tells why it failed.
create_schedule makes a job each time a cron expression fires. Durations are written 30s, 5m, 1h, 1d; times as in RFC 3339.
Lists are newest first: give next_cursor as cursor to go on. An error says which argument to change.`;

/**
 * A server for one connection, or for one request where there is none.
 *
 * @param texts to be woven into what the server writes.
 */
export function createMcpServer(
  tools: ReadonlyMap<string, Tool>,
  call: CallOperation,
  texts: StructuredTexts,
): McpServer {
  const server = new McpServer(
    { name: "errand", title: "Errand", version: VERSION },
    { instructions: INSTRUCTIONS },
  );
  // Below McpServer's own tools, which check arguments before Errand does, and say less about what is wrong.
  server.server.registerCapabilities({ tools: {} });
  server.server.setRequestHandler("tools/list", () => ({
    tools: [...tools.values()].map(({ definition }) => definition),
  }));
  server.server.setRequestHandler("tools/call", async ({ params }, { mcpReq }) => {
    const tool = tools.get(params.name);
    if (tool === undefined)
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        `There is no tool ${JSON.stringify(params.name)}.`,
      );
    try {
      const { idempotencyKey, input } = split(tool, params.arguments ?? {});
      return toolResult(
        await call({ operation: tool.operation, input, idempotencyKey, signal: mcpReq.signal }),
        texts,
      );
    } catch (error) {
      if (error instanceof Problem) return problemResult(error.code, error.message, error.errors);
      throw error;
    }
  });
  return server;
}

function split({ operation, defaults }: Tool, given: Readonly<Record<string, unknown>>) {
  const input = { ...defaults, ...given };
  if (operation.creates !== true || input[IDEMPOTENCY_KEY] === undefined)
    return { idempotencyKey: null, input };
  const { [IDEMPOTENCY_KEY]: idempotencyKey, ...rest } = input;
  if (typeof idempotencyKey === "string" && isIdempotencyKey(idempotencyKey))
    return { idempotencyKey, input: rest };
  throw new Problem("invalid_request", `${IDEMPOTENCY_KEY} ${IDEMPOTENCY_KEY_FORM}.`, {
    errors: [{ pointer: `/${IDEMPOTENCY_KEY}`, detail: IDEMPOTENCY_KEY_FORM }],
  });
}
