/** Calls of one endpoint, as a figure: how many a second, and what they cost the server. */
import { type Load, load } from "./load.ts";
import type { Figure } from "./rounds.ts";
import { KEY, type Server } from "./server.ts";

export async function calls(server: Server, what: Omit<Load, "key">): Promise<Figure> {
  const cpu = server.cpuSeconds();
  const { perSecond } = await load({ ...what, key: KEY });
  return { perSecond, cpu: ((server.cpuSeconds() - cpu) / what.count) * 1_000 };
}
