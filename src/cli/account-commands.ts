/** `errand accounts`: on the data folder itself, on the machine of the service, also while it runs. */
import type { Command } from "commander";
import { addDataDir, dataDirOf, describeUse, formatOf } from "./command-use.ts";
import { print, UsageFault } from "./output.ts";
import type { Session } from "./session.ts";

/** What these commands can do to a data folder. It is given by the program, since a door does not know the store. */
export interface DataFolder {
  createAccount(name: string): Promise<NewAccount>;
  accounts(): Promise<readonly { id: string; name: string; created_at: string }[]>;
  close(): Promise<void>;
}

/** The keys are shown in this one answer. */
interface NewAccount {
  readonly id: string;
  readonly name: string;
  readonly test_key: string;
  readonly live_key: string;
}

export type OpenDataFolder = (folder: string, env: NodeJS.ProcessEnv) => Promise<DataFolder>;

const MAX_NAME = 255;

export function addAccountCommands(program: Command, session: Session, open: OpenDataFolder): void {
  const accounts = program.command("accounts").summary("Create and list accounts, in the data folder itself");
  accounts.description(accounts.summary());

  const create = accounts
    .command("create")
    .summary("Create an account; prints a test and a live key with all scopes, this once")
    .argument("<name>", "What the account is called.");
  add(
    create,
    "create",
    ["errand accounts create Acme", "errand accounts create Acme -o json"],
    async (folder) => {
      const [name = ""] = create.processedArgs as string[];
      if (name.trim() === "" || name.length > MAX_NAME || /[\u0000-\u001f\u007f]/.test(name))
        throw new UsageFault(`the name has to have 1 to ${MAX_NAME} characters, and no control characters`);
      return folder.createAccount(name);
    },
  );

  const list = accounts.command("list").summary("List the accounts");
  add(list, "list", ["errand accounts list"], (folder) => folder.accounts());

  function add(
    command: Command,
    what: string,
    examples: readonly string[],
    run: (folder: DataFolder) => Promise<unknown>,
  ): void {
    command.description(command.summary());
    addDataDir(command);
    describeUse(command, examples);
    command.action(async () => {
      const format = formatOf(command, session);
      const folder = await open(dataDirOf(command, session), session.terminal.env);
      try {
        print(`accounts.${what}`, await run(folder), format, session.terminal);
      } finally {
        await folder.close();
      }
    });
  }
}
