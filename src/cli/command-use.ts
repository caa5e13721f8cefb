/** What commands have in common: the output option, the data folder, and examples in the help. */
import { type Command, Option } from "commander";
import { DEFAULT_DATA_DIR } from "../base/places.ts";
import { FORMATS, type Format } from "./output.ts";
import type { Session } from "./session.ts";

/** The output option and the examples that every command has. */
export function describeUse(
  command: Command,
  examples: readonly string[],
  formats: readonly Format[] = FORMATS,
): void {
  command.addOption(
    new Option("-o, --output <format>", "table for people, the others for programs")
      .choices(formats)
      .default("table"),
  );
  addExamples(command, examples);
}

export function addExamples(command: Command, examples: readonly string[]): void {
  if (examples.length === 0) return;
  command.addHelpText("after", `\nExamples:\n${examples.map((line) => `  ${line}`).join("\n")}`);
}

/** The format asked for; from here on errors follow it too. */
export function formatOf(command: Command, session: Session): Format {
  session.format = command.opts<{ output: Format }>().output;
  return session.format;
}

/** The option of the commands that work on the data folder itself. */
export function addDataDir(command: Command): void {
  command.option("--data-dir <folder>", `the data folder [ERRAND_DATA_DIR, else ${DEFAULT_DATA_DIR}]`);
}

export function dataDirOf(command: Command, session: Session): string {
  const { dataDir } = command.opts<{ dataDir?: string }>();
  return dataDir || session.terminal.env["ERRAND_DATA_DIR"] || DEFAULT_DATA_DIR;
}
