/** `errand jobs watch`: what happens to jobs, as it happens. */
import type { Command } from "commander";
import { isPassing } from "../client/client.ts";
import type { ServerEvent } from "../client/server-events.ts";
import { cellOf } from "./cells.ts";
import { describeUse, formatOf } from "./command-use.ts";
import type { Format } from "./output.ts";
import type { Session } from "./session.ts";
import { printable, type Terminal } from "./terminal.ts";

const RETRY_MS = 1_000;

export function addWatch(jobs: Command, session: Session): void {
  const command = jobs
    .command("watch")
    .summary("Follow what happens to jobs, live, until Ctrl-C")
    .option("--queue <name>", "only jobs of this queue");
  command.description(command.summary());
  describeUse(command, ["errand jobs watch", "errand jobs watch --queue mail -o ndjson"]);
  command.action(async () => {
    const { queue } = command.opts<{ queue?: string }>();
    await watch(session, formatOf(command, session), queue ?? null);
  });
}

/** Takes the stream up again where it broke off; only a first connection that fails is an error. */
async function watch(session: Session, format: Format, queue: string | null): Promise<void> {
  const client = session.connect();
  const { terminal } = session;
  let lastId: string | null = null;
  let isConnected = false;
  for (;;) {
    try {
      for await (const event of client.events(lastId)) {
        isConnected = true;
        lastId = event.id ?? lastId;
        if (event.type === "reset")
          terminal.say("errand: the service was away; what happened meanwhile is not shown");
        if (event.type.startsWith("job.")) show(event, format, queue, terminal);
      }
    } catch (error) {
      if (lastId === null || !isPassing(error)) throw error;
    }
    if (isConnected) terminal.say("errand: the connection has ended; trying again");
    isConnected = false;
    await session.pause(RETRY_MS);
  }
}

function show(event: ServerEvent, format: Format, queue: string | null, terminal: Terminal): void {
  const data = JSON.parse(event.data) as Readonly<Record<string, string | undefined>>;
  const { at = "", job_id: id = "", status, queue: name = "" } = data;
  if (queue !== null && name !== queue) return;
  if (format === "json" || format === "ndjson") return terminal.out(event.data);
  if (format === "id") return terminal.out(printable(id));
  const { style } = cellOf("status", status, 0);
  const type = terminal.paint(event.type.padEnd("job.awaiting_approval".length), style);
  terminal.out(`${printable(at.slice(11, 23))}Z  ${type}  ${printable(`${id}  ${name}`)}`.trimEnd());
}
