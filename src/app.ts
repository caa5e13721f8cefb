/** The composition root: opens, wires, starts in order, stops in reverse. */
import { type Clock, systemClock } from "./base/clock.ts";
import { createLogger, type Logger } from "./base/log.ts";
import { secretBox } from "./base/secret-box.ts";
import type { Config } from "./config.ts";
import { deferSender } from "./delivery/deferred.ts";
import { egressRules, refusalOfUrl } from "./delivery/egress.ts";
import { Engine } from "./engine/engine.ts";
import { Feed } from "./engine/events.ts";
import { makeDataFolder, secretKey, seed } from "./first-boot.ts";
import { Metrics } from "./http/metrics.ts";
import { rateLimiter } from "./http/rate-limit.ts";
import { createApp, listen, STOPPING } from "./http/server.ts";
import { mountMcp } from "./mcp/mount.ts";
import { OPERATIONS } from "./operations/index.ts";
import type { Services } from "./operations/operation.ts";
import { openStore } from "./store/sqlite/open.ts";
import { VERSION } from "./version.ts";

export interface RunningApp {
  readonly port: number;
  readonly log: Logger;
  /** The key that this first start has made; null on later ones. */
  readonly seededKey: string | null;
  /** Takes no new work, drains, and lets go of the data folder. */
  stop(): Promise<void>;
}

/** When an idle service loads what its first delivery needs. */
const WARM_AFTER_MS = 500;

export async function startApp(config: Config, clock: Clock = systemClock): Promise<RunningApp> {
  const log = createLogger(config.logLevel, config.logFormat ?? (process.stdout.isTTY ? "pretty" : "json"));
  makeDataFolder(config.dataDir);
  const metrics = config.metrics === "off" ? null : new Metrics(VERSION);
  const store = openStore({
    folder: config.dataDir,
    box: () => secretBox(secretKey(config.dataDir, config.secretKey)),
    clock,
    onSync: (durationMs) => metrics?.onSync(durationMs),
    onFailure: (what, error) => log.error({ err: error }, `${what} failed`),
  });
  const seededKey = await seed(store, config.dataDir, config.testKey, clock.now()).catch(
    failAfter(() => store.close()),
  );

  const feed = new Feed(store);
  const egress = (port: number) =>
    egressRules({
      deny: config.egressDeny,
      allow: config.egressAllow,
      listening: { host: config.host, port },
    });
  let rules = egress(config.port);
  let stopping = false;
  const notReady = () => (stopping ? STOPPING : store.trouble());
  const services: Services = {
    store,
    clock,
    feed,
    refusalOfUrl: (url) => refusalOfUrl(rules, url),
    limits: { requestsPerSecond: config.rateLimit, maxBodyBytes: config.maxBodyBytes },
  };
  const app = createApp({
    operations: OPERATIONS,
    services,
    limitRate: rateLimiter({ perSecond: config.rateLimit, burst: 2 * config.rateLimit }, clock),
    clock,
    log,
    version: VERSION,
    metrics,
    notReady,
    mountDoors: (hono) =>
      mountMcp(hono, { operations: OPERATIONS, services, allowedHosts: config.allowedHosts, log }),
  });
  const listener = await listen(app, config, clock, log).catch(failAfter(() => store.close()));

  // Errand's own port is never a target, also when it was any free one.
  rules = egress(listener.port);
  const sender = deferSender(async () => (await import("./delivery/send.ts")).createSender(rules, clock));
  const engine = new Engine({
    store,
    sender,
    clock,
    log,
    version: VERSION,
    limits: { total: config.concurrency, perOrigin: config.originConcurrency },
    retentionMs: config.retentionMs,
    onAttempt: (claim, outcome) => metrics?.onAttempt(claim, outcome),
  });
  metrics?.watch({
    figures: () => store.maintenance.figures(),
    depth: () => engine.depth,
    isReady: () => notReady() === null,
  });
  const stopWarming = clock.timer(WARM_AFTER_MS, () => void sender.load());
  const stop = async () => {
    stopping = true;
    stopWarming();
    feed.close();
    await engine.stop(config.shutdownTimeoutMs);
    // Not before: who calls while attempts end is told 503 and when to come back, and /livez and /readyz tell the truth.
    await listener.close();
    await sender.close();
    await store.close();
    metrics?.close();
  };
  await engine.start().catch(failAfter(stop));
  log.info({ version: VERSION, port: listener.port, data: config.dataDir }, "Errand is listening");

  return { port: listener.port, log, seededKey, stop };
}

/** For a part of the start that fails: what was opened before it would else keep the process, the port and the folder. */
function failAfter(close: () => Promise<void>) {
  return async (error: unknown): Promise<never> => {
    await close();
    throw error;
  };
}
