/** argv → command, nothing else. The service's code is loaded by the commands that need it. */
import { systemClock } from "./base/clock.ts";
import { run } from "./cli/run.ts";
import { processTerminal } from "./cli/terminal.ts";

void run(process.argv.slice(2), processTerminal(systemClock), {
  settings: async () => (await import("./config.ts")).SETTINGS,
  serve: async (flags) => (await import("./serve.ts")).serve(flags),
  openDataFolder: async (folder, env) => (await import("./data-folder.ts")).openDataFolder(folder, env),
  dataTools: async () => (await import("./data-folder.ts")).DATA_TOOLS,
}).then((code) => {
  // Not process.exit: what was written to a pipe may still be on its way.
  process.exitCode = code;
});
