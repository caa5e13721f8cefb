/** The HTTP server: what happens to a request, in reading order. */
import { createServer } from "node:http";
import { Server as NetServer, type Socket } from "node:net";
import { getRequestListener, RequestError } from "@hono/node-server";
import { Hono } from "hono";
import { type Clock, systemClock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import { newId } from "../base/ids.ts";
import type { Logger } from "../base/log.ts";
import type { Operation, Services } from "../operations/operation.ts";
import { type HttpEnv, headerOf } from "./env.ts";
import { inTurn } from "./in-turn.ts";
import { answerMalformed, malformed } from "./malformed.ts";
import type { Metrics } from "./metrics.ts";
import { mountOperations, refuseOtherMethods } from "./mount.ts";
import { KEYLESS_PATHS } from "./openapi-parts.ts";
import { problemResponse } from "./problem.ts";
import type { RateLimiter } from "./rate-limit.ts";
import { mountReference } from "./reference.ts";
import { FixedPathRouter } from "./router.ts";
import { SAFE_HEADERS } from "./safe-headers.ts";
import { UnreadAnswers } from "./unread.ts";

export interface HttpParts {
  readonly operations: readonly Operation[];
  readonly services: Services;
  readonly limitRate: RateLimiter;
  readonly clock: Clock;
  readonly log: Logger;
  readonly version: string;
  /** Null where they are switched off. */
  readonly metrics: Metrics | null;
  /** Null when the service can do its work; else a sentence that says why not. */
  readonly notReady: () => string | null;
  /** Mounts the other doors that speak HTTP. */
  readonly mountDoors?: (app: Hono<HttpEnv>) => void;
}

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

export function createApp(parts: HttpParts): Hono<HttpEnv> {
  const { operations, services, limitRate, clock, log, metrics, notReady, version, mountDoors } = parts;
  const app = new Hono<HttpEnv>({ router: new FixedPathRouter() });
  const unread = new UnreadAnswers();

  app.use(async function identify(c, next) {
    const given = headerOf(c, "x-request-id");
    const requestId = given !== undefined && REQUEST_ID.test(given) ? given : newId("req", clock.now());
    c.set("requestId", requestId);
    // On Node's own response, so that whatever answers, an error included, carries them.
    const { outgoing } = c.env;
    outgoing.setHeader("X-Request-Id", requestId);
    for (const [name, value] of SAFE_HEADERS) outgoing.setHeader(name, value);
    // RFC 9112 §3.2: since HTTP/1.1 a request without Host is malformed.
    const { httpVersion, headers } = c.env.incoming;
    if (headers.host === undefined && httpVersion !== "1.0")
      throw new Problem("malformed_request", "The Host header is missing (RFC 9112).");
    await next();
  });

  if (log.isLevelEnabled("debug"))
    app.use(async function record(c, next) {
      const startedMs = clock.monotonic();
      await next();
      const ms = Math.round(clock.monotonic() - startedMs);
      log.debug(
        { method: c.req.method, path: c.req.path, status: c.res.status, ms, request_id: c.var.requestId },
        "request",
      );
    });

  app.on("ALL", ["/v1/*", "/mcp"], async function serveOnlyWhenReady(c, next) {
    const reason = notReady();
    // Reading stays possible when the disk does not take writes; the store refuses what it cannot promise.
    if (reason === STOPPING) throw unavailable("Errand is shutting down.");
    c.set("limitRate", (tenant) => {
      unread.check(tenant);
      for (const [name, value] of limitRate(tenant)) c.env.outgoing.setHeader(name, value);
    });
    c.set("countAnswer", (tenant, length) => unread.add(tenant, length, c.env.outgoing));
    await next();
  });

  app.get("/livez", (c) => c.json({ status: "ok" }));
  app.get("/readyz", (c) => {
    const reason = notReady();
    return reason === null ? c.json({ status: "ready" }) : c.json({ status: "not_ready", reason }, 503);
  });

  app.get("/metrics", async (c) => {
    if (metrics === null) throw new Problem("not_found", "Metrics are switched off (ERRAND_METRICS).");
    const { type, text } = await metrics.render();
    return c.body(text, 200, { "content-type": type });
  });
  mountReference(app, operations, version);
  for (const path of Object.keys(KEYLESS_PATHS)) refuseOtherMethods(app, path, ["GET"]);
  mountOperations(app, operations, services);
  mountDoors?.(app);

  app.notFound((c) =>
    problemResponse(
      new Problem(
        "not_found",
        `There is nothing at ${c.req.method} ${c.req.path}; /docs describes what there is.`,
      ),
      c.var.requestId,
      log,
    ),
  );
  app.onError((error, c) => problemResponse(services.store.judged(error), c.var.requestId, log));
  return app;
}

export const STOPPING = "stopping";

function unavailable(detail: string): Problem {
  return new Problem("unavailable", detail, { headers: { "Retry-After": "5" } });
}

export interface Listener {
  readonly port: number;
  /** Takes no new connection and resolves when the open requests are answered, or cut off after {@link CLOSE_MS}. */
  close(): Promise<void>;
}

/** A stop wakes all who wait for something, so that an answer still open after this is one that nobody reads. */
const CLOSE_MS = 5_000;

/** How often, while closing, connections are looked for that have had their last answer. */
const SWEEP_MS = 20;

/** Slow clients are cut off by these; Node's defaults are for a server behind a proxy. */
const HEADERS_TIMEOUT_MS = 15_000;
const REQUEST_TIMEOUT_MS = 120_000;
const KEEP_ALIVE_MS = 65_000;
/**
 * An answer of which nothing is taken for so long is cut off; streams have heartbeats. What takes long to be answered, as
 * to cancel a million jobs, is no standstill.
 */
const STANDSTILL_MS = 120_000;

export function listen(
  app: Hono<HttpEnv>,
  { host, port }: { readonly host: string; readonly port: number },
  clock: Clock,
  log: Logger,
): Promise<Listener> {
  const answer = getRequestListener(app.fetch, {
    // For HTTP/1.0, which knows no Host header.
    hostname: host,
    errorHandler(error) {
      const requestId = newId("req", clock.now());
      const problem = error instanceof RequestError ? malformed(error) : error;
      const answered = problemResponse(problem, requestId, log);
      answered.headers.set("X-Request-Id", requestId);
      for (const [name, value] of SAFE_HEADERS) answered.headers.set(name, value);
      return answered;
    },
  });
  const next = inTurn((incoming, outgoing) => {
    // Node does nothing itself where somebody listens. A body that does not come is the matter of REQUEST_TIMEOUT_MS.
    outgoing.on("timeout", () => {
      if (outgoing.headersSent) incoming.socket.destroy();
    });
    void answer(incoming, outgoing);
  });
  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: 5_000,
      // Node's own refusals have no body and no request id; these are answered by the app.
      requireHostHeader: false,
    },
    next,
  );
  server.timeout = STANDSTILL_MS;
  server.on("checkExpectation", next);
  answerMalformed(server, clock);
  const connections = new Set<Socket>();
  server.on("connection", (socket) => {
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
  });
  return new Promise((resolve, reject) => {
    const refuse = (error: Error) => reject(new Error(listenFault(error, { host, port }), { cause: error }));
    server.once("error", refuse);
    server.listen(port, host, () => {
      server.off("error", refuse);
      const address = server.address();
      resolve({
        port: typeof address === "object" && address !== null ? address.port : port,
        close: () =>
          new Promise<void>((done) => {
            // Connections keep real time, whatever the service's clock says.
            const cutOff = systemClock.timer(CLOSE_MS, () => server.closeAllConnections());
            // A kept-alive connection would hold the close up until it times out: each goes after its last answer.
            let stopSweeping = () => {};
            const sweep = () => {
              // To Node one is idle, too, whose answer is given and not all sent.
              if (![...connections].some(({ writableLength }) => writableLength > 0))
                server.closeIdleConnections();
              stopSweeping = systemClock.timer(SWEEP_MS, sweep);
            };
            sweep();
            // To Node one that has not said anything yet is not idle, but about to ask.
            for (const connection of connections) if (connection.bytesRead === 0) connection.destroy();
            // Not HTTP's own, which does away with what it takes for idle first.
            NetServer.prototype.close.call(server, () => {
              cutOff();
              stopSweeping();
              done();
            });
          }),
      });
    });
  });
}

/** Why the server cannot listen: one sentence that names the setting and says what would be right. */
function listenFault(
  { code, message }: NodeJS.ErrnoException,
  { host, port }: { host: string; port: number },
): string {
  const rightHost =
    "set ERRAND_HOST (--host) to one of this machine's addresses, such as 127.0.0.1, or to 0.0.0.0 for all";
  switch (code) {
    case "EADDRINUSE":
      return `port ${port} of ${host} is taken: set ERRAND_PORT (--port) to another, or stop what listens there`;
    case "EACCES":
      return `port ${port} is kept from this user: set ERRAND_PORT (--port) to one from 1024 on`;
    case "EADDRNOTAVAIL":
      return `${host} is no address of this machine: ${rightHost}`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `no address is found for the name ${host}: ${rightHost}`;
    default:
      return `cannot listen on ERRAND_HOST ${host}, ERRAND_PORT ${port}: ${message}`;
  }
}
