/** What went wrong, as one clear line on stderr and as the exit code. */
import { CommanderError } from "commander";
import { ConfigFault } from "../base/errors.ts";
import { ApiFault, type ProblemDocument } from "../client/client.ts";
import { KeyFault } from "../client/connection.ts";
import { sentence } from "../operations/faults.ts";
import { UsageFault } from "./output.ts";
import { printable, type Terminal } from "./terminal.ts";

export const EXIT = { done: 0, failed: 1, usage: 2, key: 3, notFound: 4, jobFailed: 5 } as const;

/** The job that was waited for did not complete. */
export class AwaitedJobFault extends Error {}

/** `errand doctor` did not find the data sound: 1 for damaged, 2 for locked. */
export class DiagnosisFault extends Error {
  readonly exitCode: number;
  constructor(message: string, exitCode: number) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** One of several calls went wrong. `where` says which one; `more` tells programs so, and what was done before it. */
export class PartFault extends Error {
  readonly more: object;
  constructor(where: string, cause: unknown, more: object) {
    super(`${where}: ${lineOf(cause)}`, { cause });
    this.more = more;
  }
}

/** What a program that asked for JSON gets in place of the answer; null where there is nothing but the line. */
export function documentOf(error: unknown): object | null {
  if (error instanceof PartFault)
    return { ...(documentOf(error.cause) ?? { detail: lineOf(error.cause) }), ...error.more };
  return error instanceof ApiFault ? error.document : null;
}

function exitCodeOf(error: unknown): number {
  if (error instanceof PartFault) return exitCodeOf(error.cause);
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
  if (error instanceof UsageFault || error instanceof ConfigFault) return EXIT.usage;
  if (error instanceof KeyFault) return EXIT.key;
  if (error instanceof DiagnosisFault) return error.exitCode;
  if (error instanceof AwaitedJobFault) return EXIT.jobFailed;
  return error instanceof ApiFault ? exitCodeOfStatus(error.document.status) : EXIT.failed;
}

/** What the service calls a wrong request was a wrong use of the command. */
function exitCodeOfStatus(status: number): number {
  switch (status) {
    case 400:
    case 413:
    case 415:
    case 422:
      return EXIT.usage;
    case 401:
    case 403:
      return EXIT.key;
    case 404:
      return EXIT.notFound;
    default:
      return EXIT.failed;
  }
}

/** Says it, and answers the exit code. */
export function report(error: unknown, terminal: Terminal): number {
  // Commander has said its own errors by now.
  if (!(error instanceof CommanderError)) terminal.say(printable(`errand: ${lineOf(error)}`));
  return exitCodeOf(error);
}

function lineOf(error: unknown): string {
  if (error instanceof ApiFault) return problemLine(error.document);
  return error instanceof Error ? error.message : String(error);
}

function problemLine({ code, detail, request_id: requestId, errors = [] }: ProblemDocument): string {
  const said = errors.length > 1 ? errors.map(sentence).join(" ") : detail;
  return `${said} (${[code, requestId].filter(Boolean).join(", ")})`;
}
