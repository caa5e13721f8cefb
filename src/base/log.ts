/** Structured logs on stdout: one JSON object a line, or lines for a person. Keys and secrets never get here. */
import pino from "pino";
import { formatTime, systemClock } from "./clock.ts";

export type Logger = pino.Logger;
export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export const LOG_FORMATS = ["pretty", "json"] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

/** How much is kept of what stdout does not take at the moment; lines beyond it are lost. */
const UNWRITTEN_CHARS = 1024 * 1024;

export function createLogger(level: LogLevel, format: LogFormat): Logger {
  // Synchronous, since what is said just before a crash is what one wants to read.
  const stdout = pino.destination({ dest: 1, sync: true, maxLength: UNWRITTEN_CHARS });
  // A file on a full disk, a terminal that was closed: no reason to stop delivering. It is tried again at each line.
  stdout.on("error", () => {});
  const options: pino.LoggerOptions = {
    level,
    base: null,
    timestamp: () => `,"time":"${formatTime(systemClock.now())}"`,
  };
  return format === "json" ? pino(options, stdout) : pino(options, prettyInto(stdout));
}

const NAMES: Record<number, string> = {
  10: "trace",
  20: "debug",
  30: "info",
  40: "warn",
  50: "error",
  60: "fatal",
};

/** Time, level, message, and the rest as `name=value`. */
function prettyInto(out: { write(line: string): unknown }): { write(line: string): void } {
  return {
    write(line) {
      const { time, level, msg, err, ...rest } = JSON.parse(line) as Record<string, unknown>;
      const fields = Object.entries(rest).map(
        ([name, value]) => ` ${name}=${typeof value === "string" ? value : JSON.stringify(value)}`,
      );
      const stack = typeof err === "object" && err !== null && "stack" in err ? `\n${String(err.stack)}` : "";
      out.write(
        `${String(time).slice(11, 23)} ${NAMES[Number(level)] ?? ""} ${String(msg)}${fields.join("")}${stack}\n`,
      );
    },
  };
}
