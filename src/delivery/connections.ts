/** The connections to targets: each serves one attempt at a time, and waits a few seconds for the next to its origin. */
import type { Socket } from "node:net";
import { type buildConnector, Client } from "undici";
import { type Lookup, openSocket, sharedLookup, targetOf } from "./connect.ts";
import type { EgressRules } from "./egress.ts";
import type { Stage } from "./failure.ts";
import { passOverContinue } from "./interim.ts";
import { readInPieces } from "./pieces.ts";

/** Shorter than the 5 s of Node targets, so that a request rarely meets a connection that is just being closed. */
const IDLE_MS = 3_500;
/** The longest, where the target's `Keep-Alive` header allows more; and how much earlier than it says we let go. */
const MAX_IDLE_MS = 10_000;
const IDLE_MARGIN_MS = 1_000;

/** Idle connections of all origins together; each holds a file descriptor, of which a process may have few. */
const MAX_IDLE_CONNECTIONS = 1_000;

const MAX_HEADER_BYTES = 64 * 1024;

export interface ConnectionPool {
  /** An idle connection to the URL's origin, or a new one, which connects as soon as it is given a request. */
  take(url: URL): Connection;
  /** After a whole response: keeps the connection for the next attempt. */
  giveBack(connection: Connection): void;
  /** Ends the connection at once, at whatever stage it is. */
  drop(connection: Connection): void;
  /** Ends all connections; resolves when their sockets are closed. */
  close(): Promise<void>;
}

/** An HTTP client of its own with at most one socket: the deadline of its attempt can end it without harm to others. */
export class Connection {
  readonly url: URL;
  readonly origin: string;
  /** `host:port`. */
  readonly target: string;
  readonly client: Client;
  stage: Stage = "dns";
  socket: Socket | null = null;
  /** To be called when a request is about to be written. */
  expectResponse: () => void = () => {};
  /** To be called when the headers of the final response have come. */
  responseBegan: () => void = () => {};
  isIdle = false;
  isDropped = false;

  constructor(url: URL, connector: (connection: Connection) => buildConnector.connector) {
    this.url = url;
    this.origin = url.origin;
    this.target = targetOf(url);
    this.client = new Client(this.origin, {
      connect: connector(this),
      allowH2: false,
      pipelining: 1,
      // The attempt's own deadline covers everything.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: MAX_IDLE_MS,
      keepAliveTimeoutThreshold: IDLE_MARGIN_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
    });
  }

  /** Whether another request can be sent on it: not while the target leaves a part of the last one unread. */
  get isReusable(): boolean {
    return this.socket !== null && !this.socket.destroyed && this.socket.writableLength === 0;
  }
}

export function createConnectionPool(rules: EgressRules, systemLookup: Lookup): ConnectionPool {
  const lookup = sharedLookup(systemLookup);
  const open = new Set<Connection>();
  /** By origin; the last one was used last and is taken first. No entry is empty, so that origins do not pile up. */
  const idle = new Map<string, Connection[]>();
  let idleCount = 0;
  const sockets = new Set<Socket>();
  let onLastSocketClosed: (() => void) | null = null;

  const connector =
    (connection: Connection): buildConnector.connector =>
    (_options, done) => {
      const socket = openSocket(connection.url, {
        rules,
        lookup,
        onStage(stage) {
          connection.stage = stage;
        },
        done(error) {
          if (error === null) done(null, socket);
          else done(error, null);
        },
      });
      const reading = readInPieces(socket);
      const passOver = passOverContinue(socket);
      connection.expectResponse = () => {
        reading.expectResponse();
        passOver();
      };
      connection.responseBegan = () => reading.responseBegan();
      connection.socket = socket;
      sockets.add(socket);
      socket.once("close", () => {
        sockets.delete(socket);
        if (sockets.size === 0) onLastSocketClosed?.();
      });
    };

  const create = (url: URL): Connection => {
    const connection = new Connection(url, connector);
    open.add(connection);
    // A connection that is in use connects again by itself when nothing was sent on the old socket yet.
    connection.client.on("disconnect", () => {
      if (connection.isIdle) pool.drop(connection);
    });
    return connection;
  };

  const unlist = (connection: Connection): void => {
    const ofOrigin = idle.get(connection.origin);
    if (!connection.isIdle || ofOrigin === undefined) return;
    connection.isIdle = false;
    idleCount -= 1;
    ofOrigin.splice(ofOrigin.lastIndexOf(connection), 1);
    if (ofOrigin.length === 0) idle.delete(connection.origin);
  };

  const pool: ConnectionPool = {
    take(url) {
      for (
        let found = idle.get(url.origin)?.at(-1);
        found !== undefined;
        found = idle.get(url.origin)?.at(-1)
      ) {
        unlist(found);
        if (found.isReusable) return found;
        pool.drop(found);
      }
      return create(url);
    },
    giveBack(connection) {
      if (!connection.isReusable || idleCount >= MAX_IDLE_CONNECTIONS) {
        pool.drop(connection);
        return;
      }
      const ofOrigin = idle.get(connection.origin);
      if (ofOrigin === undefined) idle.set(connection.origin, [connection]);
      else ofOrigin.push(connection);
      connection.isIdle = true;
      idleCount += 1;
    },
    drop(connection) {
      if (connection.isDropped) return;
      connection.isDropped = true;
      unlist(connection);
      open.delete(connection);
      connection.client.destroy(() => {});
      // The client does not know the socket before it is connected.
      connection.socket?.destroy();
    },
    async close() {
      for (const connection of open) pool.drop(connection);
      if (sockets.size > 0) {
        await new Promise<void>((resolve) => {
          onLastSocketClosed = resolve;
        });
      }
    },
  };
  return pool;
}
