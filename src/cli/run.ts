/** Runs one command line and answers its exit code. */
import { stringify } from "../base/json.ts";
import { documentOf, EXIT, report } from "./faults.ts";
import { buildProgram, type Services } from "./program.ts";
import { Session } from "./session.ts";
import type { Terminal } from "./terminal.ts";

/** Commands that show every other one. */
const SHOWS_ALL = new Set(["help", "completion"]);
const OF_PROGRAM = new Set(["-h", "--help", "-V", "--version"]);

export async function run(argv: readonly string[], terminal: Terminal, services: Services): Promise<number> {
  const session = new Session(terminal);
  const line = withServe(argv);
  try {
    const [first = ""] = line;
    const wanted = {
      group: SHOWS_ALL.has(first) ? null : first,
      settings: first === "serve" || SHOWS_ALL.has(first) ? await services.settings() : null,
    };
    await buildProgram(session, services, wanted).parseAsync(line, { from: "user" });
    return EXIT.done;
  } catch (error) {
    // A program that asked for JSON gets the problem document where it would have got the answer.
    const wantsJson = session.format === "json" || session.format === "ndjson";
    const document = wantsJson ? documentOf(error) : null;
    if (document !== null) terminal.out(stringify(document, session.format === "json" ? 2 : undefined));
    return report(error, terminal);
  }
}

/** `errand` and `errand --port 8080` start the service. */
function withServe(argv: readonly string[]): string[] {
  const [first] = argv;
  const isService = first === undefined || (first.startsWith("-") && !OF_PROGRAM.has(first));
  return isService ? ["serve", ...argv] : [...argv];
}
