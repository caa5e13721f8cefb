/** The official MCP client, connected to Errand by HTTP or by stdio, in the protocol version that a test asks for. */
import { type CallToolResult, Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { BUNDLE } from "./cli.ts";

export const CURRENT = "2026-07-28";

/** `CURRENT`, or an earlier version, which begins with a handshake. */
export interface Door {
  readonly by: "http" | "stdio";
  readonly version: string;
}

export interface Service {
  readonly url: string;
  readonly key: string;
}

export async function connectMcp({ url, key }: Service, { by, version }: Door): Promise<Client> {
  const client = new Client(
    { name: "errand-test", version: "1" },
    version === CURRENT
      ? { versionNegotiation: { mode: { pin: CURRENT } } }
      : { supportedProtocolVersions: [version] },
  );
  const transport =
    by === "http"
      ? new StreamableHTTPClientTransport(new URL("/mcp", url), {
          requestInit: { headers: { authorization: `Bearer ${key}` } },
        })
      : new StdioClientTransport(stdioCommand({ url, key }));
  await client.connect(transport);
  return client;
}

/** How `errand mcp` is started. */
export function stdioCommand({ url, key }: Service) {
  return { command: process.execPath, args: [BUNDLE, "mcp"], env: { ERRAND_URL: url, ERRAND_API_KEY: key } };
}

/** The code of an error result, which is its first word; null when the tool did its work. */
export function codeOf(result: CallToolResult): string | null {
  if (result.isError !== true) return null;
  return textOf(result).split(":")[0] ?? "";
}

export function textOf({ content }: CallToolResult): string {
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** The structured content of a tool that did its work. */
export function dataOf(result: CallToolResult): Record<string, any> {
  if (result.isError === true) throw new Error(textOf(result));
  return result.structuredContent as Record<string, any>;
}
