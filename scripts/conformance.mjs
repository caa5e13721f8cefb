// Runs the official MCP conformance scenarios against Errand: npm run conformance
//
// Scenarios of features that Errand does not offer are listed, each with its reason, in test/mcp/conformance.yml; the
// run fails when any other scenario fails, and when one of those passes.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const KEY = "errand_test_0123456789abcdefghij0123456789";
const root = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "errand-conformance-"));

const errand = spawn(join(root, "node_modules/.bin/node"), [join(root, "dist/errand.cjs")], {
  env: {
    ...process.env,
    ERRAND_PORT: "0",
    ERRAND_DATA_DIR: folder,
    ERRAND_TEST_KEY: KEY,
    ERRAND_LOG_FORMAT: "json",
  },
  stdio: ["ignore", "pipe", "inherit"],
});
const port = await listeningPort(errand.stdout);

// The scenarios know no API keys; everything else reaches Errand as they sent it.
const proxy = createServer((incoming, outgoing) => {
  const { method, url, headers } = incoming;
  const options = { port, method, path: url, headers: { ...headers, authorization: `Bearer ${KEY}` } };
  const onward = request(options, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(outgoing);
  });
  onward.on("error", () => outgoing.destroy());
  incoming.pipe(onward);
});
await new Promise((resolve) => {
  proxy.listen(0, "127.0.0.1", resolve);
});

const runner = join(root, "node_modules/@modelcontextprotocol/conformance/dist/index.js");
const baseline = join(root, "test/mcp/conformance.yml");
const parameters = [
  "server",
  "--url",
  `http://127.0.0.1:${proxy.address().port}/mcp`,
  "--expected-failures",
  baseline,
];
const scenarios = spawn(process.execPath, [runner, ...parameters, ...process.argv.slice(2)], {
  cwd: folder,
  stdio: "inherit",
});
const code = await new Promise((resolve) => {
  scenarios.once("exit", resolve);
});
proxy.close();
errand.kill("SIGTERM");
await new Promise((resolve) => {
  errand.once("exit", resolve);
});
rmSync(folder, { recursive: true, force: true });
process.exit(code ?? 1);

/** Errand says it in its log. */
function listeningPort(stdout) {
  return new Promise((resolve, reject) => {
    let log = "";
    stdout.on("data", (chunk) => {
      log += chunk;
      const found = /"port":(\d+)/.exec(log)?.[1];
      if (found !== undefined) resolve(Number(found));
    });
    stdout.once("end", () => reject(new Error(`Errand did not start:\n${log}`)));
  });
}
