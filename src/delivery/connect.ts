/** Opens the socket of a delivery. The egress rules are applied here, to the very address that is connected to. */
import { type LookupAddress, lookup as systemLookup } from "node:dns";
import { connect as connectTcp, isIP, type LookupFunction, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { bareHost, type EgressRules, objection, portOf, refusal } from "./egress.ts";
import { DeliveryError, explainOpening, type OpeningStage, type Stage } from "./failure.ts";

/** Finds all addresses of a name. */
export type Lookup = (hostname: string, done: LookupDone) => void;
type LookupDone = (error: Error | null, addresses: readonly LookupAddress[]) => void;

/** By the system's resolver, so that `/etc/hosts` and the names of a container network count. */
export const lookupBySystem: Lookup = (hostname, done) => {
  systemLookup(hostname, { all: true, order: "verbatim" }, done);
};

/**
 * A lookup that asks once for all who want the same name at the same time. The system's resolver has few threads: a
 * name whose server is dead would hold them all, once for each of its deliveries, and delay every other name.
 */
export function sharedLookup(lookup: Lookup): Lookup {
  const waiting = new Map<string, LookupDone[]>();
  return (hostname, done) => {
    const others = waiting.get(hostname);
    if (others !== undefined) {
      others.push(done);
      return;
    }
    const all = [done];
    waiting.set(hostname, all);
    lookup(hostname, (error, addresses) => {
      waiting.delete(hostname);
      for (const each of all) each(error, addresses);
    });
  };
}

/** How long one of several addresses may take to accept before the next one is tried (RFC 8305 §5). */
const NEXT_ADDRESS_AFTER_MS = 500;

/** When the system begins to probe a connection on which nothing moves. */
const TCP_KEEP_ALIVE_AFTER_MS = 60_000;

/** `host:port`, as it stands in messages. */
export function targetOf(url: URL): string {
  return `${url.hostname}:${portOf(url)}`;
}

export interface Opening {
  readonly rules: EgressRules;
  readonly lookup: Lookup;
  /** Told each stage as it begins; the last one is `request`. */
  readonly onStage: (stage: Stage) => void;
  /** Called once: with null when the socket can be used. Not called when it is destroyed without an error. */
  readonly done: (error: DeliveryError | null) => void;
}

/**
 * Begins to connect to the host of the URL, through TLS for https, and returns the socket at once, so that a deadline
 * can destroy it at any stage. Throws a {@link DeliveryError} when the URL names an address that is refused.
 */
export function openSocket(url: URL, opening: Opening): Socket {
  const { rules, onStage } = opening;
  const host = bareHost(url);
  const port = portOf(url);
  const isLiteral = isIP(host) !== 0;
  // Node never calls `lookup` for an address, so a literal is judged before there is a socket.
  if (isLiteral) refuse(refusal(rules, host, port));
  let stage: OpeningStage = isLiteral ? "connect" : "dns";
  const enter = (next: OpeningStage): void => {
    stage = next;
    onStage(next);
  };
  enter(stage);

  const options = {
    host,
    port,
    lookup: guardedLookup(url, opening, () => enter("connect")),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_AFTER_MS,
  };
  const isSecure = url.protocol === "https:";
  const socket = isSecure
    ? connectTls({ ...options, servername: isLiteral ? "" : serverName(host), ALPNProtocols: ["http/1.1"] })
    : connectTcp(options);
  let isDone = false;
  const finish = (error: DeliveryError | null): void => {
    if (isDone) return;
    isDone = true;
    if (error === null) onStage("request");
    opening.done(error);
  };
  socket.setNoDelay(true).setKeepAlive(true, TCP_KEEP_ALIVE_AFTER_MS);
  // Ahead of the TLS handshake's own listener.
  socket.prependOnceListener("connect", () => {
    const refused = refusalOfPeer(rules, socket, port);
    if (refused !== null) socket.destroy(refused);
    else if (isSecure) enter("tls");
    else finish(null);
  });
  socket.once("secureConnect", () => finish(null));
  socket.on("error", (error: Error) => finish(explainOpening(error, stage, targetOf(url))));
  return socket;
}

/** Resolves the name and leaves only addresses that may be called; when none is left, the target is blocked. */
function guardedLookup(url: URL, { rules, lookup }: Opening, onFound: () => void): LookupFunction {
  const port = portOf(url);
  return (hostname, _options, callback) => {
    lookup(hostname, (error, addresses) => {
      if (error !== null) {
        callback(explainOpening(error, "dns", targetOf(url)), []);
        return;
      }
      const objections = addresses.map(({ address }) => objection(rules, address, port));
      const allowed = addresses.filter((_, i) => objections[i] === null);
      if (allowed.length > 0) {
        onFound();
        callback(null, allowed);
        return;
      }
      const [found] = objections;
      callback(
        found == null
          ? new DeliveryError("dns", `${targetOf(url)}: the name does not resolve to any address`)
          : // The address itself is left out: what inner names resolve to is nobody's business.
            new DeliveryError("blocked_target", `${targetOf(url)} resolves to ${found}`),
        [],
      );
    });
  };
}

/** The last look, at what the system did connect to: nothing above it should ever let this find something. */
function refusalOfPeer(rules: EgressRules, socket: Socket, port: number): DeliveryError | null {
  if (socket.remoteAddress === undefined) return null;
  const refused = refusal(rules, socket.remoteAddress, port);
  return refused === null ? null : new DeliveryError("blocked_target", refused);
}

function refuse(refused: string | null): void {
  if (refused !== null) throw new DeliveryError("blocked_target", refused);
}

/** RFC 6066 §3: without a trailing dot. */
function serverName(host: string): string {
  return host.replace(/\.$/, "");
}
