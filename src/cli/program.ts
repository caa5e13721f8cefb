/** The tree of commands: what the operations make, and the few that are more than one call. */
import { Command, Option } from "commander";
import { OPERATIONS } from "../operations/index.ts";
import { VERSION } from "../version.ts";
import { addAccountCommands, type OpenDataFolder } from "./account-commands.ts";
import { addApply } from "./apply.ts";
import { addExamples } from "./command-use.ts";
import { addCompletion } from "./completion.ts";
import { addDataCommands, type DataTools } from "./data-commands.ts";
import { addOperation } from "./operation-command.ts";
import { UsageFault } from "./output.ts";
import type { Session } from "./session.ts";
import { addWait } from "./wait.ts";
import { addWatch } from "./watch.ts";

/** One setting of the service, as far as the help tells of it. */
interface SettingHelp {
  readonly env: string;
  readonly flag: string;
  readonly help: string;
  readonly standard: string;
}

/** What the commands need of the rest of the program, loaded when one of them is used. */
export interface Services {
  settings(): Promise<Readonly<Record<string, SettingHelp>>>;
  /** `flags` by the names of the settings. */
  serve(flags: Readonly<Record<string, string | undefined>>): Promise<void>;
  readonly openDataFolder: OpenDataFolder;
  dataTools(): Promise<DataTools>;
}

const GROUPS: Readonly<Record<string, string>> = {
  jobs: "Create, follow and control jobs",
  schedules: "Jobs by cron expression",
  queues: "Look at queues, limit them, pause them",
  keys: "API keys of this account and mode",
};

export interface Wanted {
  /** The group whose commands are wanted, the others being made without theirs; null: all are. */
  readonly group: string | null;
  /** Loaded for the commands that show them, which takes the service's code. */
  readonly settings: Readonly<Record<string, SettingHelp>> | null;
}

export function buildProgram(session: Session, services: Services, wanted: Wanted): Command {
  const program = new Command("errand")
    .description("Errand: the HTTP job queue. Without a command it starts the service.")
    .version(VERSION, "-V, --version")
    .usage("[command]")
    .exitOverride()
    .configureHelp({ styleTitle: (text) => session.terminal.paint(text, "bold") })
    .configureOutput({
      writeOut: (text) => session.terminal.out(text.trimEnd()),
      writeErr: (text) => session.terminal.say(text.trimEnd()),
      outputError: (text, write) => write(oneLine(text)),
    });
  const isWanted = (name: string) => wanted.group === null || wanted.group === name;
  addServe(program, services, wanted.settings);
  const group = groupsOf(program);
  for (const operation of OPERATIONS) {
    if (operation.cli === null) continue;
    const [first = "", second] = operation.cli.command.split(" ");
    const parent = second === undefined ? program : group(first);
    if (second === undefined || isWanted(first)) addOperation(parent, second ?? first, operation, session);
  }
  if (isWanted("jobs")) addWait(group("jobs"), session);
  if (isWanted("jobs")) addWatch(group("jobs"), session);
  if (isWanted("schedules")) addApply(group("schedules"), session);
  addAccountCommands(program, session, services.openDataFolder);
  addMcp(program, session);
  addDataCommands(program, session, () => services.dataTools());
  addCompletion(program, session);
  addLicenses(program, session);
  program.addHelpText(
    "after",
    `
Environment:
  ERRAND_API_KEY  the key; on the machine of the service, its test key by default
  ERRAND_URL      where the service is; http://localhost:3000 by default

Exit codes: 0 done, 1 failed, 2 usage, 3 key, 4 not found, 5 the awaited job failed`,
  );
  addExamples(program, [
    "errand serve",
    `errand jobs create --url https://example.com/hook --payload '{"order":42}' --wait`,
    "errand jobs list --status failed",
  ]);
  return program;
}

/** A group is made when the first of its commands is. */
function groupsOf(program: Command): (name: string) => Command {
  return (name) => {
    const known = program.commands.find((command) => command.name() === name);
    if (known !== undefined) return known;
    const summary = GROUPS[name] ?? `Commands on ${name.replaceAll("-", " ")}`;
    return program.command(name).summary(summary).description(summary);
  };
}

function addServe(
  program: Command,
  services: Services,
  settings: Readonly<Record<string, SettingHelp>> | null,
): void {
  const command = program.command("serve").summary("Start the service (also what errand alone does)");
  command.description(
    "Start the service: the API, the dispatch loop and the cron loop, in one process on one data folder.",
  );
  const named = Object.entries(settings ?? {}).map(([name, { flag, help, standard, env }]) => {
    const option = new Option(flag, `${help} [${standard === "" ? env : `${env}, ${standard}`}]`);
    command.addOption(option);
    return { name, option };
  });
  addExamples(command, ["errand", "errand serve --port 8080 --data-dir /var/lib/errand"]);
  command.action(async () => {
    const given = command.opts<Record<string, string>>();
    await services.serve(
      Object.fromEntries(named.map(({ name, option }) => [name, given[option.attributeName()]])),
    );
  });
}

function addMcp(program: Command, session: Session): void {
  const command = program
    .command("mcp")
    .summary("Serve MCP over stdio, for clients that start their servers")
    .description(
      "Serve the Model Context Protocol over stdio: the tools of /mcp, as a client of the service at ERRAND_URL.",
    );
  addExamples(command, ["errand mcp", "ERRAND_URL=https://errand.example.com errand mcp"]);
  command.action(async () => {
    const { serveMcpOverStdio } = await import("../mcp/stdio.ts");
    const { stdin: input, stdout: output } = process;
    await serveMcpOverStdio(session.connect(), OPERATIONS, { input, output });
  });
}

function addLicenses(program: Command, session: Session): void {
  const command = program
    .command("licenses")
    .summary("Print the licences of Errand and of all that this executable holds");
  command.description(command.summary());
  addExamples(command, ["errand licenses | less"]);
  command.action(() => {
    const { getAsset, isSea } = process.getBuiltinModule("node:sea");
    if (!isSea()) throw new UsageFault("only the executable carries them; here they lie in node_modules");
    session.terminal.out(getAsset("licenses", "utf8").trimEnd());
  });
}

/** `error: unknown option '--ulr'\n(Did you mean --url?)` as one line in this program's voice. */
function oneLine(text: string): string {
  const line = text
    .trim()
    .replace(/^error: /, "")
    .replace(/\s*\n\(Did you mean (.+)\?\)$/s, " (did you mean $1?)");
  return `errand: ${line}`;
}
