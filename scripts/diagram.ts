// Writes the state diagram in ARCHITECTURE.md from the table in src/jobs/lifecycle.ts.
//
//   npm run diagram
import { readFileSync, writeFileSync } from "node:fs";
import { STATUSES } from "../src/jobs/job.ts";
import { EVENTS, FINAL, LIFECYCLE } from "../src/jobs/lifecycle.ts";

const FILE = new URL("../ARCHITECTURE.md", import.meta.url);
const DIAGRAM = /```mermaid\n[^]*?```/;

/** Mermaid's stateDiagram: every row of the table is an arrow; events between the same two states share one. */
export function stateDiagram(): string {
  const lines = ["```mermaid", "stateDiagram-v2", "  [*] --> pending", "  [*] --> awaiting_approval"];
  for (const from of STATUSES) {
    for (const to of STATUSES) {
      const events = EVENTS.filter((event) => LIFECYCLE[from][event]?.includes(to));
      if (events.length > 0) lines.push(`  ${from} --> ${to}: ${events.join(", ")}`);
    }
  }
  for (const final of FINAL) lines.push(`  ${final} --> [*]`);
  return [...lines, "```"].join("\n");
}

if (import.meta.main) {
  const text = readFileSync(FILE, "utf8");
  if (!DIAGRAM.test(text)) throw new Error("ARCHITECTURE.md has no mermaid diagram to replace");
  writeFileSync(
    FILE,
    text.replace(DIAGRAM, () => stateDiagram()),
  );
}
