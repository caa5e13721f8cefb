/** MCP over Streamable HTTP at /mcp, stateless: every request brings its key and gets its answer, whatever its version. */
import { createMcpHandler, isJsonContentType } from "@modelcontextprotocol/server";
import type { Context as HonoContext } from "hono";
import type { Principal } from "../accounts/account.ts";
import { Problem } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import { authenticate, requireScope } from "../http/auth.ts";
import { readBody } from "../http/body.ts";
import { type HttpEnv, headerOf } from "../http/env.ts";
import { EVENT_STREAM } from "../http/events.ts";
import { problemDocument, problemOf } from "../http/problem.ts";
import { callOperation } from "../operations/call.ts";
import { type Operation, type Services, Stream } from "../operations/operation.ts";
import { readMessage } from "./message.ts";
import type { Answer } from "./result.ts";
import { createMcpServer, type ToolCall } from "./server.ts";
import { StructuredTexts } from "./structured.ts";
import { toolsOf } from "./tools.ts";

export interface McpParts {
  readonly operations: readonly Operation[];
  readonly services: Services;
  readonly log: Logger;
}

/** Answers one request; the checks of Host and Origin come before it. */
export type McpDoor = (c: HonoContext<HttpEnv>) => Promise<Response>;

export function createMcpDoor({ operations, services, log }: McpParts): McpDoor {
  const tools = toolsOf(operations);

  return async (c) => {
    const principal = await authenticate(services.store.accounts, headerOf(c, "authorization"));
    c.var.limitRate(principal.tenant);
    if (c.req.method !== "POST") {
      // Streams and sessions of older protocol versions are for servers that have something to push.
      throw new Problem("method_not_allowed", `${c.req.method} is not possible here; POST is.`, {
        headers: { Allow: "POST" },
      });
    }
    const read = readMessage(await textOf(c, services.limits.maxBodyBytes));
    if ("fault" in read) return c.json({ ...read.fault, id: null }, 400);
    const { message } = read;
    // Protocol version 2025-03-26 takes several messages in one request; each of them counts.
    const further = Array.isArray(message) ? message.length - 1 : 0;
    for (let i = 0; i < further; i++) c.var.limitRate(principal.tenant);

    let answeredChars = 0;
    const call = async (toolCall: ToolCall) => {
      const answer = await answerTo(toolCall, principal, c);
      const isMuch = answeredChars > 0 && answeredChars + answer.body.length > MAX_TOGETHER_CHARS;
      if (isMuch && answer.status < 400) throw tooMuchTogether(toolCall.operation);
      answeredChars += answer.body.length;
      // It stands in the result as text and as structure.
      c.var.countAnswer(principal.tenant, 2 * answer.body.length);
      return answer;
    };
    const texts = new StructuredTexts();
    const handler = createMcpHandler(() => createMcpServer(tools, call, texts), {
      // There is nothing to subscribe to: the tools are those of the version that runs.
      maxSubscriptions: 0,
      onerror: (error) =>
        log.debug({ err: error, request_id: c.var.requestId }, "an MCP request was refused"),
    });
    return woven(await handler.fetch(c.req.raw, { parsedBody: message }), texts);
  };

  /** The operation called in this process, and answered as the REST API would. */
  async function answerTo(call: ToolCall, principal: Principal, c: HonoContext<HttpEnv>): Promise<Answer> {
    const { operation, input, idempotencyKey } = call;
    const signal = AbortSignal.any([call.signal, c.req.raw.signal]);
    try {
      requireScope(principal, operation.scope);
      const done = await callOperation(operation, input, {
        services,
        principal,
        idempotencyKey,
        signal: () => signal,
      });
      if (done instanceof Stream) throw new Error(`${operation.name} has no end, and can be no tool`);
      return done.answer;
    } catch (error) {
      const problem = problemOf(services.store.judged(error), c.var.requestId, log);
      return { status: problem.status, body: JSON.stringify(problemDocument(problem, c.var.requestId)) };
    }
  }
}

/** The answers to one request wait together until its sender has read them. */
const MAX_TOGETHER_CHARS = 16 * 1024 * 1024;

function tooMuchTogether({ effect }: Operation): Problem {
  const wayOut =
    effect === "read"
      ? "send this one in a request of its own"
      : "what this one asked for is done, so do not send it again, but read what came of it in a request of its own";
  return new Problem(
    "payload_too_large",
    `The answers to the messages of this request are over 16 MiB together; ${wayOut}.`,
  );
}

/** The response with the structured results in their places. */
async function woven(response: Response, texts: StructuredTexts): Promise<Response> {
  const { body } = response;
  if (body === null) return response;
  if (response.headers.get("content-type") !== EVENT_STREAM)
    return new Response(texts.weave(await response.text()), response);
  // Each message is written in one piece.
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  const weaving = new TransformStream<Uint8Array, Uint8Array>({
    transform: (piece, out) => out.enqueue(encoder.encode(texts.weave(decoder.decode(piece)))),
  });
  return new Response(body.pipeThrough(weaving), response);
}

/** The text of a request that says that it is JSON. */
async function textOf(c: HonoContext<HttpEnv>, maxBytes: number): Promise<string> {
  if (!isJsonContentType(headerOf(c, "content-type") ?? null))
    throw new Problem("unsupported_media_type", "The Content-Type has to be application/json.");
  return readBody(c.env.incoming, maxBytes);
}
