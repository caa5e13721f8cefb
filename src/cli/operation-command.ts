/** Makes a command of an operation: its arguments and options from the input's fields, its answer printed. */
import type { Command } from "commander";
import type { Answer } from "../client/client.ts";
import { describeField, isRequired } from "../operations/coerce.ts";
import type { Operation } from "../operations/operation.ts";
import { isObject } from "./cells.ts";
import { describeUse, formatOf } from "./command-use.ts";
import { fieldOptions, inputOf } from "./field-options.ts";
import { followToEnd, requireCompleted } from "./follow.ts";
import { FORMATS, FORMATS_WITHOUT_ID, type Format, print } from "./output.ts";
import type { Session } from "./session.ts";

/** Adds the command to the group that it belongs to. */
export function addOperation(parent: Command, name: string, operation: Operation, session: Session): void {
  const command = parent.command(name).summary(operation.summary);
  command.description([operation.summary, operation.description].filter(Boolean).join("\n\n"));
  for (const field of operation.cli?.positional ?? []) {
    const schema = operation.input.entries[field]!;
    command.argument(isRequired(schema) ? `<${field}>` : `[${field}]`, describeField(schema));
  }
  for (const option of fieldOptions(operation)) command.addOption(option);
  if (operation.creates === true)
    command.option("--idempotency-key <key>", "a repeat under the same key makes nothing new");
  const waits = operation.name === "jobs.create";
  if (waits) command.option("--wait", "wait for the job to end, telling what happens on stderr");
  describeUse(command, operation.cli?.examples ?? [], formatsOf(operation));

  command.action(async () => {
    const options = command.opts<Record<string, unknown>>();
    const positional = command.processedArgs as (string | undefined)[];
    const format = formatOf(command, session);
    const input = await inputOf(operation, positional, options, session.terminal);
    const client = session.connect();
    const answer = await client.call(operation, input, {
      idempotencyKey: options["idempotencyKey"] as string | undefined,
    });
    remark(answer, session);
    const id = isObject(answer.body) ? answer.body["id"] : undefined;
    if (waits && options["wait"] === true && typeof id === "string") {
      const ended = await followToEnd(session, client, id, null, true);
      print(operation.name, ended, format, session.terminal);
      requireCompleted(ended);
    } else {
      print(operation.name, answer.body, format, session.terminal);
    }
  });
}

/** What the schema of an answer is made of; a list stands in `data`. */
interface Shape {
  readonly type: string;
  readonly entries?: Readonly<Record<string, Shape>>;
  readonly item?: Shape;
}

function formatsOf({ output }: Operation): readonly Format[] {
  if (output === null) return FORMATS;
  const { entries = {} }: Shape = output;
  const fields = entries["data"]?.item?.entries ?? entries;
  return "id" in fields || "name" in fields ? FORMATS : FORMATS_WITHOUT_ID;
}

/** What the answer says beside its data. */
function remark({ body, headers }: Answer, { terminal, format }: Session): void {
  if (headers.get("idempotency-replayed") === "true")
    terminal.say("This is the answer that the same idempotency key got before; nothing new was made.");
  if (body === null) terminal.say("Done.");
  if (!isObject(body)) return;
  if (body["deduplicated"] === true)
    terminal.say("A job with this dedupe key is there already; no second one was made.");
  if (typeof body["next_cursor"] === "string" && format !== "json")
    terminal.say(`There are more: --cursor ${body["next_cursor"]}`);
}
