/** MCP over stdio (`errand mcp`): the same tools as at /mcp, each call passed on to the REST API of the service. */
import type { Readable, Writable } from "node:stream";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { Problem } from "../base/errors.ts";
import { stringify } from "../base/json.ts";
import { ApiFault, type Client, ConnectFault } from "../client/client.ts";
import { checkInput } from "../operations/faults.ts";
import type { Operation } from "../operations/operation.ts";
import type { Answer } from "./result.ts";
import { createMcpServer, type ToolCall } from "./server.ts";
import { LineTransport } from "./stdio-transport.ts";
import { StructuredTexts } from "./structured.ts";
import { toolsOf } from "./tools.ts";

/** Serves until the input ends. */
export function serveMcpOverStdio(
  client: Client,
  operations: readonly Operation[],
  { input, output }: { input: Readable; output: Writable },
): Promise<void> {
  const tools = toolsOf(operations);
  const texts = new StructuredTexts();
  const transport = new LineTransport(input, output, texts);
  return new Promise((resolve) => {
    input.once("close", resolve);
    input.once("end", resolve);
    serveStdio(() => createMcpServer(tools, (call) => passOn(client, call), texts), {
      transport,
      maxSubscriptions: 0,
    });
  });
}

async function passOn(
  client: Client,
  { operation, input, idempotencyKey, signal }: ToolCall,
): Promise<Answer> {
  // Here, as the service does for its own tools: a query or a path would turn what is wrong into strings.
  checkInput(operation, input);
  try {
    const { status, body } = await client.call(operation, input, {
      idempotencyKey: idempotencyKey ?? undefined,
      signal,
    });
    return { status, body: body === null ? "" : stringify(body) };
  } catch (error) {
    if (error instanceof ApiFault)
      return { status: error.document.status, body: JSON.stringify(error.document) };
    if (error instanceof ConnectFault)
      throw new Problem("unavailable", `${error.message}.`, { cause: error });
    throw error;
  }
}
