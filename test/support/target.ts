/** A real HTTP target with scripted answers: records what it got, and lets a test wait for it. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The body as it came: `body` is these bytes read as UTF-8. */
  readonly bytes: Buffer;
}

/** What to answer to one request. `wait`: the answer is held until it resolves. `sent` is called once it is on its way. */
export interface Scripted {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
  readonly wait?: Promise<unknown>;
  readonly sent?: () => void;
}

type Script = (received: Received, count: number) => Scripted | Promise<Scripted>;

export interface Target {
  readonly url: string;
  readonly port: number;
  readonly received: readonly Received[];
  /** Requests that are being answered now, and the most there ever were at once. */
  readonly active: number;
  readonly peak: number;
  /** Resolves with the n-th request, counted from 1, as soon as it has come. */
  request(n: number): Promise<Received>;
  close(): Promise<void>;
}

export async function startTarget(script: Script = () => ({ body: `{"ok":true}` })): Promise<Target> {
  const received: Received[] = [];
  const waiters: { n: number; resolve: (received: Received) => void }[] = [];
  let active = 0;
  let peak = 0;

  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    active += 1;
    peak = Math.max(peak, active);
    const bytes = await bytesOf(incoming);
    const { method = "", url: path = "", headers } = incoming;
    const one = { method, path, headers, body: bytes.toString("utf8"), bytes };
    received.push(one);
    const count = received.length;
    for (const waiter of waiters.filter(({ n }) => n <= count)) waiter.resolve(received[waiter.n - 1]!);
    const scripted = await script(one, count);
    await scripted.wait;
    active -= 1;
    outgoing.writeHead(scripted.status ?? 200, { "content-type": "application/json", ...scripted.headers });
    outgoing.end(scripted.body ?? "", scripted.sent);
  };

  const server = createServer(
    (incoming, outgoing) => void answer(incoming, outgoing).catch(() => outgoing.destroy()),
  );
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    port,
    received,
    get active() {
      return active;
    },
    get peak() {
      return peak;
    },
    request: (n) =>
      received.length >= n
        ? Promise.resolve(received[n - 1]!)
        : new Promise((resolve) => waiters.push({ n, resolve })),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function bytesOf(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** Something to wait on that the test decides: `open` lets go of everything that waits. */
export function gate(): { wait: Promise<void>; open: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { wait: promise, open: resolve };
}
