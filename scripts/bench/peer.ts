/** The same jobs with BullMQ on Redis, which are no part of the project: an optional peer of the benchmarks. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { delivered } from "./delivered.ts";
import { compare, inTurns } from "./rounds.ts";
import { say } from "./say.ts";
import {
  cpuSeconds,
  type Server,
  startErrand,
  startProgram,
  startTarget,
  temporaryFolder,
} from "./server.ts";

const BULLMQ = "bullmq@6.7.0";
/** What it speaks to Redis with, unless another client is chosen. */
const CLIENT = "ioredis@5";
const COUNT = 10_000;

/** When Redis syncs its log: once a second, which loses that second in a power cut, or before each answer, as Errand does. */
const SYNCS = ["everysec", "always"] as const;
type Sync = (typeof SYNCS)[number];

/** 10,000 jobs end to end, with BullMQ and with Errand. */
export async function peer(): Promise<void> {
  const redis = versionOfRedis();
  if (redis === null) return say("left out", "no redis-server", "install it so that it is on the PATH");
  const packages = temporaryFolder();
  try {
    install(packages);
  } catch {
    rmSync(packages, { recursive: true, force: true });
    return say("left out", `no ${BULLMQ}`, "npm could not install it into a temporary folder");
  }
  say("peer", BULLMQ, redis);

  const [target, errand] = [await startTarget(), await startErrand()];
  const peers: Peer[] = [];
  for (const sync of SYNCS) peers.push(await startPeer(sync, packages));
  const [ours = [], ...theirs] = await inTurns(
    () => delivered(errand, target, COUNT),
    ...peers.map((one) => () => delivered(one, target, COUNT)),
  );
  for (const [n, sync] of SYNCS.entries()) {
    const goal = sync === "everysec" ? "at least 1.5; CPU at most 0.5" : "";
    compare([`BullMQ, appendfsync ${sync}`, theirs[n] ?? []], ["Errand", ours], goal);
  }
  for (const one of peers) await one.stop();
  await Promise.all([errand.stop(), target.stop()]);
  rmSync(packages, { recursive: true, force: true });
}

function versionOfRedis(): string | null {
  try {
    return execFileSync("redis-server", ["--version"], { encoding: "utf8" }).split(" sha=")[0] ?? null;
  } catch {
    return null;
  }
}

function install(folder: string): void {
  execFileSync(
    "npm",
    ["install", "--silent", "--no-save", "--no-audit", "--ignore-scripts", BULLMQ, CLIENT],
    {
      cwd: folder,
      stdio: "ignore",
    },
  );
}

type Peer = Pick<Server, "url" | "cpuSeconds"> & { stop(): Promise<void> };

/** Redis, the route and the worker: their CPU counts together. */
async function startPeer(sync: Sync, packages: string): Promise<Peer> {
  const redis = await startRedis(sync);
  const env = { NODE_PATH: join(packages, "node_modules"), REDIS_PORT: String(redis.port) };
  const program = fileURLToPath(new URL("./bullmq.cjs", import.meta.url));
  const start = (role: string) => startProgram([process.execPath, program, role], { env });
  const [worker, route] = [await start("worker"), await start("route")];
  return {
    url: route.url,
    cpuSeconds: () => route.cpuSeconds() + worker.cpuSeconds() + cpuSeconds(redis.pid),
    async stop() {
      await Promise.all([route.stop(), worker.stop()]);
      await redis.stop();
    },
  };
}

async function startRedis(sync: Sync): Promise<{ port: number; pid: number; stop(): Promise<void> }> {
  const folder = temporaryFolder();
  const port = await freePort();
  const options = { port, bind: "127.0.0.1", dir: folder, save: "", appendonly: "yes", appendfsync: sync };
  const child = spawn(
    "redis-server",
    Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]),
    { stdio: ["ignore", "pipe", "ignore"] },
  );
  let output = "";
  await new Promise<void>((resolve, reject) => {
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      if (output.includes("Ready to accept connections")) resolve();
    });
    child.once("exit", () => reject(new Error(`redis-server ended:\n${output}`)));
  });
  return {
    port,
    pid: child.pid ?? 0,
    async stop() {
      const gone = once(child, "exit");
      child.kill("SIGKILL"); // Nothing of it is kept.
      await gone;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Redis cannot say which port it took, so one that was free a moment ago is named to it. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
