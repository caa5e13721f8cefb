/** argv → subcommand, nothing else. */
import { ConfigFault } from "./config.ts";

async function main(): Promise<void> {
  const { serve } = await import("./serve.ts");
  await serve({});
}

main().catch((error: unknown) => {
  process.stderr.write(`errand: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(error instanceof ConfigFault ? 2 : 1);
});
