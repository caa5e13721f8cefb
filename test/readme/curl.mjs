// Stands in for `curl` in the examples: runs the real one, notes the status of each answer, and leaves a stream that does
// not end by itself after its first lines.
//
//   node curl.mjs <real curl> <file for the statuses> <arguments…>
import { spawn } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [curl, statusFile, ...args] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "errand-curl-"));
const headers = join(folder, "headers");
const isStream = args.some((arg) => /^-[a-zA-Z]*N$/.test(arg));

const child = spawn(curl, ["--dump-header", headers, ...args], { stdio: ["inherit", "pipe", "inherit"] });
child.stdout.on("data", (chunk) => {
  process.stdout.write(chunk);
  if (isStream && chunk.includes("\n\n")) child.kill();
});
child.on("close", (code) => {
  const status = /^HTTP\/\S+ (\d{3})/.exec(readFileSync(headers, "utf8"))?.[1] ?? "no answer";
  appendFileSync(statusFile, `${status}\n`);
  rmSync(folder, { recursive: true });
  process.exitCode = isStream ? 0 : (code ?? 1);
});
