/**
 * A target that answers at once with 100 bytes, and tells when each request came and how many there were. Some paths
 * are less kind: /hang never answers, /late/MS does so late, /status/CODE with that status, /flaky fails every second
 * time, /large answers with 200 KB.
 */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

const ANSWER = JSON.stringify({ ok: true, text: "x".repeat(80) });
const LARGE = JSON.stringify({ text: "x".repeat(200_000) });
let count = 0;
/** Requests to /hang so far. */
let hanging = 0;
let waiting: { atLeast: number; answer: () => void }[] = [];
const arrivals = new Map<string, number>();

const server = createServer((incoming, outgoing) => {
  const url = incoming.url ?? "/";
  if (url === "/count") return void outgoing.end(String(count));
  if (url === "/arrivals") return void outgoing.end(JSON.stringify([...arrivals]));
  if (url === "/reset") {
    count = 0;
    arrivals.clear();
    return void outgoing.end();
  }
  if (url.startsWith("/until/")) {
    // Answers once so many requests have come.
    waiting.push({ atLeast: Number(url.slice("/until/".length)), answer: () => outgoing.end() });
    return tell();
  }
  if (url === "/hanging") return void outgoing.end(String(hanging));
  if (url.startsWith("/hang")) return void (hanging += 1);
  count += 1;
  // Wall clock with a fraction, comparable between the processes of one machine.
  if (url.length > 1) arrivals.set(url.slice(1), performance.timeOrigin + performance.now());
  incoming.resume();
  const [, path, argument] = url.split("/");
  if (path === "late") setTimeout(() => answer(outgoing, 200), Number(argument));
  else answer(outgoing, statusAt(path, argument), path === "large" ? LARGE : ANSWER);
  if (waiting.length > 0) tell();
});

function answer(outgoing: ServerResponse, status: number, text = ANSWER): void {
  outgoing.writeHead(status, { "content-type": "application/json" });
  outgoing.end(text);
}

function statusAt(path: string | undefined, argument: string | undefined): number {
  if (path === "status") return Number(argument);
  return path === "flaky" && count % 2 === 0 ? 503 : 200;
}

function tell(): void {
  for (const { answer } of waiting.filter(({ atLeast }) => atLeast <= count)) answer();
  waiting = waiting.filter(({ atLeast }) => atLeast > count);
}

// On every address of 127.0.0.0/8, each an origin of its own.
server.listen(0, "0.0.0.0", () => {
  process.stdout.write(`{"port":${(server.address() as AddressInfo).port}}\n`);
});
process.on("SIGTERM", () => process.exit(0));
