/** Mounts /mcp. The protocol's library is loaded with the first call, so that nobody else waits for it at the start. */
import type { Hono } from "hono";
import type { HttpEnv } from "../http/env.ts";
import { requireKnownOrigin } from "../http/origin.ts";
import type { McpDoor, McpParts } from "./http.ts";

const MCP_PATH = "/mcp";

export function mountMcp(app: Hono<HttpEnv>, parts: McpParts & { allowedHosts: readonly string[] }): void {
  let door: Promise<McpDoor> | null = null;
  app.use(MCP_PATH, requireKnownOrigin(parts.allowedHosts));
  app.all(MCP_PATH, async (c) => {
    door ??= import("./http.ts").then(({ createMcpDoor }) => createMcpDoor(parts));
    return (await door)(c);
  });
}
