/** `errand completion`: scripts for bash, zsh and fish, made from the tree of commands. */
import { Argument, type Command } from "commander";
import type { Session } from "./session.ts";

/** A command, the words that lead to it, and what may follow them. */
interface Node {
  /** `jobs create`; empty for the program. */
  readonly path: string;
  readonly words: readonly Word[];
}

interface Word {
  readonly text: string;
  readonly help: string;
  /** An option that takes a value, and the values it is limited to, if it is. */
  readonly value: null | { readonly choices: readonly string[] };
}

const SHELLS = { bash, zsh, fish };

export function addCompletion(program: Command, session: Session): void {
  const command = program
    .command("completion")
    .summary("Print the completion script of a shell")
    .addArgument(new Argument("<shell>", "the shell").choices(Object.keys(SHELLS)));
  command.description(command.summary());
  command.addHelpText(
    "after",
    `
Examples:
  source <(errand completion bash)                                     in ~/.bashrc
  source <(errand completion zsh)                                      in ~/.zshrc, after compinit
  errand completion fish > ~/.config/fish/completions/errand.fish`,
  );
  command.action((shell: keyof typeof SHELLS) => session.terminal.out(SHELLS[shell](nodesOf(program, []))));
}

function nodesOf(command: Command, path: readonly string[]): Node[] {
  const words: Word[] = command.commands.map((child) => ({
    text: child.name(),
    help: child.summary(),
    value: null,
  }));
  for (const { choices } of argumentsOf(command))
    words.push(...choices.map((text) => ({ text, help: "", value: null })));
  for (const option of command.options) {
    if (option.hidden) continue;
    const value = option.required ? { choices: option.argChoices ?? [] } : null;
    for (const text of [option.short, option.long])
      if (text !== undefined) words.push({ text, help: option.description, value });
  }
  words.push({ text: "--help", help: "show the help", value: null });
  const own = { path: path.join(" "), words };
  return [own, ...command.commands.flatMap((child) => nodesOf(child, [...path, child.name()]))];
}

function argumentsOf(command: Command): { choices: readonly string[] }[] {
  return command.registeredArguments.map(({ argChoices }) => ({ choices: argChoices ?? [] }));
}

/** The lines of a `case` over the options that take a value: what may stand after each. */
function valueCases(
  nodes: readonly Node[],
  fileCommand: string,
  wordCommand: (words: string) => string,
): string {
  const cases = nodes.flatMap(({ path, words }) =>
    words.flatMap(({ text, value }) => {
      if (value === null) return [];
      const action = value.choices.length === 0 ? fileCommand : wordCommand(value.choices.join(" "));
      return [`    ${quoted(`${path} ${text}`.trim())}) ${action}; return ;;`];
    }),
  );
  return cases.join("\n");
}

function wordCases(nodes: readonly Node[]): string {
  return nodes
    .map(
      ({ path, words }) =>
        `    ${quoted(path)}) candidates=${quoted(words.map(({ text }) => text).join(" "))} ;;`,
    )
    .join("\n");
}

/** The words of the line up to the cursor that name a command, in `path`: options are passed over. */
const pathLoop = (paths: string, words: string) => `  local at="" word
  for word in ${words}; do
    case " ${paths} " in *" $\{at:+$at/}$word "*) at="$\{at:+$at/}$word" ;; esac
  done
  at="$\{at//\\// }"`;

function pathsOf(nodes: readonly Node[]): string {
  return nodes
    .map(({ path }) => path.replaceAll(" ", "/"))
    .filter(Boolean)
    .join(" ");
}

function bash(nodes: readonly Node[]): string {
  return `# bash completion of errand
_errand() {
  local current="$\{COMP_WORDS[COMP_CWORD]}" previous="$\{COMP_WORDS[COMP_CWORD - 1]}" candidates=""
${pathLoop(pathsOf(nodes), `"$\{COMP_WORDS[@]:1:COMP_CWORD-1}"`)}
  case "$\{at:+$at }$previous" in
${valueCases(nodes, `COMPREPLY=($(compgen -f -- "$current"))`, (words) => `COMPREPLY=($(compgen -W "${words}" -- "$current"))`)}
  esac
  case "$at" in
${wordCases(nodes)}
  esac
  COMPREPLY=($(compgen -W "$candidates" -- "$current"))
}
complete -o default -F _errand errand`;
}

function zsh(nodes: readonly Node[]): string {
  return `#compdef errand
_errand() {
  local previous="$\{words[CURRENT-1]}" line=("$\{(@)words[2,CURRENT-1]}") candidates=""
${pathLoop(pathsOf(nodes), `"$\{line[@]}"`)}
  case "$\{at:+$at }$previous" in
${valueCases(nodes, "_files", (words) => `compadd -- ${words}`)}
  esac
  case "$at" in
${wordCases(nodes)}
  esac
  compadd -- $\{=candidates}
}
compdef _errand errand`;
}

function fish(nodes: readonly Node[]): string {
  const lines = nodes.flatMap(({ path, words }) =>
    words.map(({ text, help, value }) => {
      const word = text.startsWith("--")
        ? `-l ${text.slice(2)}`
        : text.startsWith("-")
          ? `-s ${text.slice(1)}`
          : `-a ${text}`;
      const takes =
        value === null
          ? ""
          : value.choices.length === 0
            ? " -r -F"
            : ` -x -a ${quoted(value.choices.join(" "))}`;
      return `complete -c errand -n ${quoted(`__errand_at ${quoted(path)}`)} ${word}${takes} -d ${quoted(help)}`;
    }),
  );
  return `# fish completion of errand
function __errand_at
  set -l path ""
  for word in (commandline -opc)[2..]
    set -l next (string trim "$path $word")
    contains -- $next ${nodes.map(({ path }) => quoted(path)).join(" ")}; and set path $next
  end
  test "$path" = "$argv[1]"
end
complete -c errand -f
${lines.join("\n")}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
