/** Where a command writes: data on stdout, the rest on stderr, and what each of the two can show. */
import { styleText } from "node:util";
import type { Clock } from "../base/clock.ts";

export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan" | "magenta";

export interface Terminal {
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
  /** Columns of stdout; null when it is no terminal, and lines may be of any length. */
  readonly width: number | null;
  out(line: string): void;
  say(line: string): void;
  /** Colours of stdout and of stderr; the text alone where there are none. */
  paint(text: string, style: Style | null): string;
  paintAside(text: string, style: Style | null): string;
  /** All of stdin, as it is. */
  stdin(): Promise<Buffer>;
}

/** The control characters by which a foreign text could take over a terminal, and those that turn its direction. */
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** A text for a person to read: what would act on the terminal is shown as `\u001b`. */
export function printable(text: string): string {
  return text.replace(UNSAFE, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function processTerminal(clock: Clock): Terminal {
  const { env, stdin, stdout, stderr } = process;
  // `errand jobs list | head` closes the pipe: that is no error of this command.
  stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit(0);
  });
  // What is said aside is for whom it may concern: a reader who left, or a terminal that was closed, ends nothing.
  stderr.on("error", () => {});
  const painter = (on: boolean) => (text: string, style: Style | null) =>
    on && style !== null ? styleText(style, text, { validateStream: false }) : text;
  return {
    env,
    clock,
    width: stdout.isTTY ? stdout.columns || 80 : null,
    out: (line) => stdout.write(`${line}\n`),
    say: (line) => stderr.write(`${line}\n`),
    paint: painter(hasColour(env, stdout.isTTY)),
    paintAside: painter(hasColour(env, stderr.isTTY)),
    async stdin() {
      const chunks: Buffer[] = [];
      for await (const chunk of stdin) chunks.push(chunk as Buffer);
      return Buffer.concat(chunks);
    },
  };
}

/** https://no-color.org and https://force-color.org: set and not empty; the wish for none wins. */
export function hasColour(env: NodeJS.ProcessEnv, isTerminal: boolean): boolean {
  if (env["NO_COLOR"]) return false;
  if (env["FORCE_COLOR"]) return env["FORCE_COLOR"] !== "0";
  return isTerminal && env["TERM"] !== "dumb";
}
