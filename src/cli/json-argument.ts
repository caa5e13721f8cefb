/** JSON on a command line: as it is, from a file (`@file`), or from stdin (`-`); its bytes are kept. */
import { readFileSync } from "node:fs";
import { RawJson } from "../base/json.ts";
import { UsageFault } from "./output.ts";
import type { Terminal } from "./terminal.ts";

const decoder = new TextDecoder("utf-8", { fatal: true });

export async function jsonArgument(flag: string, given: string, terminal: Terminal): Promise<RawJson> {
  const text = await textOf(flag, given, terminal);
  try {
    JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : "not JSON";
    throw new UsageFault(
      `${flag} has to be JSON, @file or - for stdin: ${why}. A plain text takes quotes of its own: '"text"'`,
    );
  }
  return new RawJson(text.trim());
}

/** The text of a file, or of stdin for `-`. */
export async function readText(what: string, file: string, terminal: Terminal): Promise<string> {
  const bytes = file === "-" ? await terminal.stdin() : readBytes(what, file);
  try {
    return decoder.decode(bytes);
  } catch {
    throw new UsageFault(`${what}: ${file === "-" ? "stdin" : file} is not UTF-8, which JSON has to be`);
  }
}

async function textOf(flag: string, given: string, terminal: Terminal): Promise<string> {
  if (given === "-") return readText(flag, "-", terminal);
  return given.startsWith("@") ? readText(flag, given.slice(1), terminal) : given;
}

function readBytes(what: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : null;
    if (code === "ENOENT") throw new UsageFault(`${what}: there is no file ${file}`);
    throw new UsageFault(`${what}: ${file} cannot be read (${String(code)})`);
  }
}
