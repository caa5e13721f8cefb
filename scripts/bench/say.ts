/** One line of a benchmark's figures. */
export function say(what: string, value: string, target = ""): void {
  process.stdout.write(`  ${what.padEnd(44)} ${value.padStart(16)}  ${target}\n`);
}
