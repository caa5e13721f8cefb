/** A target that answers at once with 100 bytes, and tells when each request came and how many there were. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const ANSWER = JSON.stringify({ ok: true, text: "x".repeat(80) });
let count = 0;
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
  if (url.startsWith("/hang")) return;
  count += 1;
  // Wall clock with a fraction, comparable between the processes of one machine.
  if (url.length > 1) arrivals.set(url.slice(1), performance.timeOrigin + performance.now());
  incoming.resume();
  outgoing.writeHead(200, { "content-type": "application/json" });
  outgoing.end(ANSWER);
  if (waiting.length > 0) tell();
});

function tell(): void {
  for (const { answer } of waiting.filter(({ atLeast }) => atLeast <= count)) answer();
  waiting = waiting.filter(({ atLeast }) => atLeast > count);
}

// On every address of 127.0.0.0/8, each an origin of its own.
server.listen(0, "0.0.0.0", () => {
  process.stdout.write(`{"port":${(server.address() as AddressInfo).port}}\n`);
});
process.on("SIGTERM", () => process.exit(0));
