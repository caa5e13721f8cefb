/** IP addresses as numbers: read from text, compared with ranges, and the IPv4 addresses that an IPv6 one carries. */
import { isIPv4 } from "node:net";

export interface Address {
  readonly family: 4 | 6;
  readonly bits: bigint;
}

/** All addresses of one family whose first bits are equal; what a CIDR (RFC 4632) names. */
export interface Range extends Address {
  /** Ones where the bits of an address have to be those of the range. */
  readonly mask: bigint;
}

const WIDTH = { 4: 32, 6: 128 } as const;
const LOW_32 = 0xffff_ffffn;

/**
 * The address that a text spells, or null. A zone (`fe80::1%eth0`) is left out. IPv4-mapped addresses (`::ffff:7f00:1`,
 * RFC 4291 §2.5.5.2) come back as IPv4, since the system connects to that.
 */
export function parseAddress(text: string): Address | null {
  const bare = text.includes("%") ? text.slice(0, text.indexOf("%")) : text;
  if (isIPv4(bare)) return { family: 4, bits: ipv4Bits(bare) };
  const bits = ipv6Bits(bare);
  if (bits === null) return null;
  return bits >> 32n === 0xffffn ? { family: 4, bits: bits & LOW_32 } : { family: 6, bits };
}

/** The range that an address or a CIDR names, or null. Bits beyond the prefix are left out: `10.1.2.3/8` is `10.0.0.0/8`. */
export function parseRange(text: string): Range | null {
  const match = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text);
  const address = parseAddress(match?.[1] ?? "");
  if (address === null) return null;
  const { family, bits } = address;
  const width = WIDTH[family];
  // A mapped range such as ::ffff:10.0.0.0/104 counts its prefix in 128 bits, of which 96 say that it is mapped.
  const written = text.includes(":") ? 128 : 32;
  const prefix = Number(match?.[2] ?? written) - (written - width);
  if (prefix < 0 || prefix > width) return null;
  const rest = BigInt(width - prefix);
  const mask = ((1n << BigInt(prefix)) - 1n) << rest;
  return { family, bits: bits & mask, mask };
}

export function isWithin(range: Range, address: Address): boolean {
  return range.family === address.family && (address.bits & range.mask) === range.bits;
}

export function formatIPv4(bits: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => (bits >> shift) & 0xffn).join(".");
}

/** The IPv4 addresses inside an IPv6 one, to which a translator, a tunnel or a relay may pass the packets on. */
export function carriedIPv4(address: Address): Address[] {
  if (address.family === 4) return [];
  const { bits } = address;
  return CARRIERS.filter(({ range }) => isWithin(range, address))
    .flatMap(({ carried }) => carried(bits))
    .map((inner) => ({ family: 4, bits: inner }));
}

interface Carrier {
  readonly range: Range;
  readonly carried: (bits: bigint) => bigint[];
}

const CARRIERS: readonly Carrier[] = [
  // IPv4-compatible, RFC 4291 §2.5.5.1. `::` and `::1` lie in it and mean themselves.
  carrier("::/96", (bits) => (bits <= 1n ? [] : [bits])),
  // IPv4-translated, RFC 2765 §2.1
  carrier("::ffff:0:0:0/96", (bits) => [bits & LOW_32]),
  // NAT64 with the well-known prefix, RFC 6052 §2.1
  carrier("64:ff9b::/96", (bits) => [bits & LOW_32]),
  // NAT64 with a local prefix, RFC 8215: where the IPv4 address stands depends on how long the site made it
  carrier("64:ff9b:1::/48", (bits) =>
    [bits & LOW_32, ...[48n, 56n, 64n].map((length) => afterPrefix(bits, length))].filter(isAssigned),
  ),
  // 6to4, RFC 3056 §2
  carrier("2002::/16", (bits) => [(bits >> 80n) & LOW_32]),
  // Teredo, RFC 4380 §4: the server, and the client with its bits turned over
  carrier("2001::/32", (bits) => [(bits >> 64n) & LOW_32, (bits & LOW_32) ^ LOW_32]),
  // ISATAP, RFC 5214 §6.1: under any prefix, told by the interface identifier
  carrier("::/0", (bits) => (((bits >> 32n) & 0xfdff_ffffn) === 0x5efen ? [bits & LOW_32] : [])),
];

function carrier(cidr: string, carried: (bits: bigint) => bigint[]): Carrier {
  return { range: rangeOf(cidr), carried };
}

/** A range that stands in the source; anything else is a defect. */
export function rangeOf(cidr: string): Range {
  const range = parseRange(cidr);
  if (range === null) throw new Error(`not an address range: ${cidr}`);
  return range;
}

/** RFC 6052 §2.2: the IPv4 address follows the prefix, with bits 64 to 71 jumped over. */
function afterPrefix(bits: bigint, length: bigint): bigint {
  const withoutGap = ((bits >> 64n) << 56n) | (bits & ((1n << 56n) - 1n));
  return (withoutGap >> (120n - length - 32n)) & LOW_32;
}

/** Addresses of 0.0.0.0/8 are none: in an address that was made for another length of prefix these bits are zero. */
function isAssigned(bits: bigint): boolean {
  return bits >> 24n !== 0n;
}

function ipv4Bits(text: string): bigint {
  return BigInt(text.split(".").reduce((bits, octet) => bits * 256 + Number(octet), 0));
}

/** Null for what is no IPv6 address. The URL parser knows, and Node's `isIPv6` takes milliseconds of every start. */
function ipv6Bits(text: string): bigint | null {
  const url = /^[0-9a-f:.]+$/i.test(text) ? URL.parse(`http://[${text}]/`) : null;
  if (url === null) return null;
  // It writes every spelling as RFC 5952 does, without dotted quads.
  const [head = "", tail] = url.hostname.slice(1, -1).split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const middle = Array.from({ length: 8 - left.length - right.length }, () => "0");
  return [...left, ...middle, ...right].reduce((bits, group) => (bits << 16n) | BigInt(`0x${group}`), 0n);
}
