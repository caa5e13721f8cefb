/** What the commands of one run share: the terminal, and the service that they speak to. */
import { Client } from "../client/client.ts";
import { readConnection } from "../client/connection.ts";
import { OPERATIONS } from "../operations/index.ts";
import type { Operation } from "../operations/operation.ts";
import type { Format } from "./output.ts";
import type { Terminal } from "./terminal.ts";

export class Session {
  readonly terminal: Terminal;
  /** The format that the running command was asked for: its errors follow it. */
  format: Format = "table";

  constructor(terminal: Terminal) {
    this.terminal = terminal;
  }

  /** Throws a KeyFault where there is no key. */
  connect(): Client {
    return new Client(readConnection(this.terminal.env));
  }

  /** Resolves after so many milliseconds. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.terminal.clock.timer(ms, resolve));
  }
}

export function operationNamed(name: string): Operation {
  const found = OPERATIONS.find((operation) => operation.name === name);
  if (found === undefined) throw new Error(`no operation ${name}`);
  return found;
}
