/** Which addresses Errand may call: the rules that every connection is held against, and what they say of an address. */
import { networkInterfaces } from "node:os";
import {
  type Address,
  carriedIPv4,
  formatIPv4,
  isWithin,
  parseAddress,
  parseRange,
  type Range,
  rangeOf,
} from "./address.ts";

export interface EgressOptions {
  /** Addresses, CIDRs, or the word `private`. */
  readonly deny: readonly string[];
  /** The same; what it names is allowed whatever else forbids it. */
  readonly allow: readonly string[];
  /** Where Errand itself listens: the bound address, as `server.address()` gives it. */
  readonly listening: { readonly host: string; readonly port: number };
}

export interface EgressRules {
  readonly deny: readonly Range[];
  readonly allow: readonly Range[];
  readonly own: { readonly isHost: (address: Address) => boolean; readonly port: number };
  /** What was said of hosts on ports other than our own, where it hangs on nothing but these rules. */
  readonly said: Map<string, string | null>;
}

/** Hosts remembered: reading and judging one takes microseconds of every job, and jobs name the same few. */
const MAX_SAID = 1_000;

const LOOPBACK = ["127.0.0.0/8", "::1/128"].map(rangeOf);

/** What `private` names: the inner networks, and the ranges of RFC 6890 that are not routed on the internet. */
const PRIVATE = [
  ...LOOPBACK,
  ...["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"].map(rangeOf), // RFC 1918
  ...["fc00::/7", "fec0::/10"].map(rangeOf), // unique local, RFC 4193, and site-local before it
  ...["100.64.0.0/10"].map(rangeOf), // carrier-grade NAT, RFC 6598
  ...["192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4"].map(rangeOf),
];

/** Refused unless ALLOW names them: nothing that a job should call lives there, and some of it hands out credentials. */
const NEVER: readonly { readonly what: string; readonly ranges: readonly Range[] }[] = [
  {
    what: "a cloud metadata address",
    ranges: [
      "169.254.169.254", // AWS, Google Cloud, Azure, Oracle, DigitalOcean and others
      "fd00:ec2::/32", // AWS instance services over IPv6
      "fd20:ce::254", // Google Cloud over IPv6
      "fd00:42::42", // Scaleway over IPv6
      "100.100.100.200", // Alibaba Cloud
      "168.63.129.16", // Azure's wire server
      "192.0.0.192", // Oracle Cloud Classic
    ].map(rangeOf),
  },
  { what: "a link-local address", ranges: ["169.254.0.0/16", "fe80::/10"].map(rangeOf) },
  { what: "an unspecified address", ranges: ["0.0.0.0/8", "::/128"].map(rangeOf) },
  { what: "a multicast address", ranges: ["224.0.0.0/4", "ff00::/8"].map(rangeOf) },
  { what: "the broadcast address", ranges: ["255.255.255.255"].map(rangeOf) },
];

/** Throws an Error whose message names the entry that is wrong. */
export function egressRules(options: EgressOptions): EgressRules {
  const { host, port } = options.listening;
  return {
    deny: options.deny.flatMap(parseEntry),
    allow: options.allow.flatMap(parseEntry),
    own: { isHost: ownHost(host), port },
    said: new Map(),
  };
}

function parseEntry(entry: string): readonly Range[] {
  if (entry === "private") return PRIVATE;
  const range = parseRange(entry);
  if (range === null) {
    throw new Error(
      `${JSON.stringify(entry)} is not an address (192.0.2.7, 2001:db8::7), a CIDR (10.0.0.0/8) or the word private`,
    );
  }
  return [range];
}

/**
 * Whether an address leads to Errand itself. A loopback listener owns the port on all loopback addresses, so that
 * `localhost` is refused however it resolves; a wildcard one, and one that is given by name, owns it on every address
 * that the machine has at that moment.
 */
function ownHost(host: string): (address: Address) => boolean {
  const isLoopback = (address: Address): boolean => within(LOOPBACK, address);
  const listening = parseAddress(host.replace(/^\[|\]$/g, ""));
  if (host === "localhost" || (listening !== null && isLoopback(listening))) return isLoopback;
  if (listening !== null && listening.bits !== 0n) return (address) => isEqual(address, listening);
  return (address) => isLoopback(address) || interfaceAddresses().some((own) => isEqual(address, own));
}

function interfaceAddresses(): Address[] {
  return Object.values(networkInterfaces())
    .flatMap((interfaces) => interfaces ?? [])
    .flatMap(({ address }) => parseAddress(address) ?? []);
}

function isEqual(a: Address, b: Address): boolean {
  return a.family === b.family && a.bits === b.bits;
}

function within(ranges: readonly Range[], address: Address): boolean {
  return ranges.some((range) => isWithin(range, address));
}

/**
 * Why this address, one that a socket may connect to, is not to be called: what follows "it is …". Null when it may be.
 * An address that carries IPv4 ones is judged by each of them too. What cannot be read as an address is refused.
 */
export function objection(rules: EgressRules, text: string, port: number): string | null {
  const address = parseAddress(text);
  return address === null ? "not an IP address" : objectionToAny(rules, address, port);
}

/** The objection to the address itself, or to one that it carries. */
function objectionToAny(rules: EgressRules, address: Address, port: number): string | null {
  const outer = objectionTo(rules, address, port);
  if (outer !== null) return outer;
  for (const carried of carriedIPv4(address)) {
    const inner = objectionTo(rules, carried, port);
    if (inner !== null) return `a way to ${formatIPv4(carried.bits)}, ${inner}`;
  }
  return null;
}

function objectionTo(rules: EgressRules, address: Address, port: number): string | null {
  if (within(rules.allow, address)) return null;
  if (port === rules.own.port && rules.own.isHost(address))
    return `Errand's own address and port, ${UNLESS_NAMED}`;
  const never = NEVER.find(({ ranges }) => within(ranges, address));
  if (never !== undefined) return `${never.what}, ${UNLESS_NAMED}`;
  return within(rules.deny, address) ? "an address that ERRAND_EGRESS_DENY forbids" : null;
}

const UNLESS_NAMED = "which is called only if ERRAND_EGRESS_ALLOW names it";

/** A sentence that says why the address is refused, or null. */
export function refusal(rules: EgressRules, address: string, port: number): string | null {
  return sentence(address, objection(rules, address, port));
}

function sentence(host: string, found: string | null): string | null {
  return found === null ? null : `${host} is ${found}`;
}

/**
 * What the URL alone shows: IP literals in every spelling (the URL parser has made `2130706433`, `0x7f.1` and full-width
 * digits into dotted quads) and the names that are always loopback (RFC 6761 §6.3). Other names are judged when the
 * socket connects, on the address that is used.
 */
export function refusalOfUrl(rules: EgressRules, url: Readonly<URL>): string | null {
  const host = bareHost(url);
  const port = portOf(url);
  // Which addresses are our own can change while we run.
  if (port === rules.own.port) return refusalOfHost(rules, host, port);
  const known = rules.said.get(host);
  if (known !== undefined) return known;
  const found = refusalOfHost(rules, host, port);
  if (rules.said.size >= MAX_SAID) rules.said.clear();
  rules.said.set(host, found);
  return found;
}

function refusalOfHost(rules: EgressRules, host: string, port: number): string | null {
  const address = parseAddress(host);
  if (address !== null) return sentence(host, objectionToAny(rules, address, port));
  if (!/(?:^|\.)localhost\.?$/.test(host)) return null;
  const objections = ["127.0.0.1", "::1"].map((address) => objection(rules, address, port));
  return objections.includes(null) ? null : sentence(host, objections[0] ?? null);
}

/** The host of a URL as sockets take it: an IPv6 literal without its brackets. */
export function bareHost(url: Readonly<URL>): string {
  return url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname;
}

/** The port of an http or https URL; the URL parser leaves the scheme's own one out. */
export function portOf(url: Readonly<URL>): number {
  if (url.port !== "") return Number(url.port);
  return url.protocol === "https:" ? 443 : 80;
}
