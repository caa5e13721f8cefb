/** `errand schedules apply`: makes the schedules of a file so, each by its name, and tells what changed. */
import type { Command } from "commander";
import { JsonFault, parseJson, stringify } from "../base/json.ts";
import { type Client, pathSegment } from "../client/client.ts";
import { cellOf, isObject } from "./cells.ts";
import { describeUse, formatOf } from "./command-use.ts";
import { PartFault } from "./faults.ts";
import { readText } from "./json-argument.ts";
import { print, UsageFault } from "./output.ts";
import { operationNamed, type Session } from "./session.ts";
import { printable } from "./terminal.ts";

type Fields = Readonly<Record<string, unknown>>;
type Replaced = Fields & { readonly id: string; readonly change: Result };

interface Applied {
  readonly name: string;
  readonly id: string;
  readonly result: Result;
  readonly changes: readonly Change[];
}

/** As the service says it, which also knows of secrets that are not shown. */
type Result = "created" | "replaced" | "unchanged";

interface Change {
  readonly field: string;
  readonly from: unknown;
  readonly to: unknown;
}

/** What differs in two answers though nobody changed the schedule. */
const VOLATILE = new Set(["change", "updated_at", "next_run_at", "last_run_at", "last_job_id"]);
const MAX_PAGE = 100;

export function addApply(schedules: Command, session: Session): void {
  const command = schedules
    .command("apply")
    .summary("Create or replace the schedules of a JSON array, each by its name; others are left alone")
    .requiredOption("-f, --file <file>", "the file, or - for stdin");
  command.description(command.summary());
  describeUse(command, [
    "errand schedules apply -f schedules.json",
    "errand schedules apply -f - < schedules.json",
  ]);
  command.action(async () => {
    const format = formatOf(command, session);
    const { file } = command.opts<{ file: string }>();
    const wanted = scheduleList(await readText("--file", file, session.terminal));
    const client = session.connect();
    const before = await schedulesByName(client);
    const applied: Applied[] = [];
    for (const [index, { name, ...fields }] of wanted.entries()) {
      const one = await apply(client, name, fields, before.get(name)).catch((error: unknown) => {
        const where = `${file === "-" ? "stdin" : file}: schedule ${JSON.stringify(name)} (index ${index})`;
        throw new PartFault(where, error, { schedule: { name, index }, applied });
      });
      applied.push(one);
      if (format === "table") tell(one, session);
      if (format === "id") print("schedules.apply", one, format, session.terminal);
    }
    if (format === "json" || format === "ndjson") print("schedules.apply", applied, format, session.terminal);
  });
}

/** The entries of the file, checked as far as their names; the rest is checked by the service. */
function scheduleList(text: string): (Fields & { name: string })[] {
  let list: unknown;
  try {
    list = parseJson(text, (path) => /^\[\]\/(steps\/\[\]\/)?payload$/.test(path));
  } catch (error) {
    if (error instanceof JsonFault) throw new UsageFault(`--file is not JSON: ${error.message}`);
    throw error;
  }
  if (!Array.isArray(list)) throw new UsageFault("--file has to hold a JSON array of schedules");
  const names = new Set<string>();
  return list.map((entry: unknown, i) => {
    const name = isObject(entry) ? entry["name"] : undefined;
    if (typeof name !== "string") throw new UsageFault(`--file: the schedule at index ${i} has no name`);
    if (names.has(name)) throw new UsageFault(`--file: two schedules are named ${JSON.stringify(name)}`);
    names.add(name);
    return { ...(entry as Fields), name };
  });
}

async function schedulesByName(client: Client): Promise<Map<string, Fields>> {
  const found = new Map<string, Fields>();
  let cursor: unknown;
  do {
    const page = await client.call(operationNamed("schedules.list"), { limit: MAX_PAGE, cursor });
    const { data, next_cursor: next } = page.body as { data: Fields[]; next_cursor: string | null };
    for (const one of data) if (typeof one["name"] === "string") found.set(one["name"], one);
    cursor = next ?? undefined;
  } while (cursor !== undefined);
  return found;
}

async function apply(
  client: Client,
  name: string,
  fields: Fields,
  before: Fields | undefined,
): Promise<Applied> {
  const path = `/v1/schedules/by-name/${pathSegment(name)}`;
  const after = (await client.request({ method: "PUT", path, body: fields })).body as Replaced;
  const changes = Object.keys(before === undefined ? {} : after)
    .filter((field) => !VOLATILE.has(field) && stringify(before?.[field]) !== stringify(after[field]))
    .map((field) => ({ field, from: before?.[field], to: after[field] }));
  return { name, id: after.id, result: after.change, changes };
}

function tell({ name, id, result, changes }: Applied, { terminal }: Session): void {
  const style = result === "created" ? "green" : result === "replaced" ? "yellow" : "dim";
  terminal.out(`${terminal.paint(result.padEnd("unchanged".length), style)}  ${printable(`${name}  ${id}`)}`);
  const now = terminal.clock.now();
  const shown = (field: string, value: unknown) => cellOf(field, value, now).text || "(none)";
  for (const { field, from, to } of changes)
    terminal.out(`    ${field}: ${shown(field, from)} → ${shown(field, to)}`);
}
