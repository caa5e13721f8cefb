/** `errand backup`, `restore`, `resume` and `doctor`: on the data folder as a whole. */
import type { Command } from "commander";
import { addDataDir, dataDirOf, describeUse, formatOf } from "./command-use.ts";
import { DiagnosisFault } from "./faults.ts";
import { FORMATS_WITHOUT_ID, print } from "./output.ts";
import type { Session } from "./session.ts";

/** What the program gives these commands, since a door does not know the store. Each throws one sentence when it cannot. */
export interface DataTools {
  /** Answers the size of the copy. */
  backup(folder: string, file: string): { bytes: number };
  restore(folder: string, file: string): void;
  /** False when nothing was held. */
  resume(folder: string): boolean;
  doctor(folder: string): {
    readonly verdict: "sound" | "damaged" | "locked" | "unreadable";
    readonly findings: readonly { check: string; result: string; detail: string }[];
    readonly exitCode: number;
  };
}

type LoadTools = () => Promise<DataTools>;

export function addDataCommands(program: Command, session: Session, load: LoadTools): void {
  add(
    "backup",
    "Copy the data into a new file; works while the service runs",
    "<file>",
    (tools, folder, file) => {
      const { bytes } = tools.backup(folder, file);
      session.terminal.say(
        "The secret key (ERRAND_SECRET_KEY, or the file secret-key) is not in it: keep that too.",
      );
      return { file, bytes };
    },
  );
  add(
    "restore",
    "Put a backup in the place of the data; refused while the service runs",
    "<file>",
    (tools, folder, file) => {
      tools.restore(folder, file);
      session.terminal.say("Dispatch and cron stay paused at the next start, until: errand resume");
      return { file, restored: true };
    },
  );
  add(
    "resume",
    "Start dispatch and cron again after a restore; works while the service runs",
    null,
    (tools, folder) => {
      const resumed = tools.resume(folder);
      if (!resumed) session.terminal.say("Nothing was held.");
      return { resumed };
    },
  );
  add(
    "doctor",
    "Look whether the data is sound: exit 0, 1 damaged or not there, 2 in use",
    null,
    (tools, folder) => tools.doctor(folder),
  );

  function add(
    name: string,
    summary: string,
    argument: string | null,
    run: (tools: DataTools, folder: string, file: string) => object,
  ): void {
    const command = program.command(name).summary(summary).description(summary);
    if (argument !== null) command.argument(argument, "The file of the backup.");
    addDataDir(command);
    const example = `errand ${name}${argument === null ? "" : " errand-backup.db"}`;
    describeUse(command, [example], FORMATS_WITHOUT_ID);
    command.action(async () => {
      const format = formatOf(command, session);
      const folder = dataDirOf(command, session);
      const [file = ""] = command.processedArgs as string[];
      const answer = run(await load(), folder, file);
      if (!("findings" in answer)) return print(name, answer, format, session.terminal);
      const { verdict, findings, exitCode } = answer as ReturnType<DataTools["doctor"]>;
      print(name, findings, format, session.terminal);
      if (exitCode !== 0) throw new DiagnosisFault(`the data in ${folder} is ${verdict}`, exitCode);
    });
  }
}
