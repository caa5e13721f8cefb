/** X.509 certificates made on the spot (RFC 5280, in DER): self-signed or signed by another, for any name and time. */
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";

export interface Certificate {
  /** PEM. */
  readonly cert: string;
  readonly key: string;
  readonly name: string;
  readonly privateKey: KeyObject;
}

export interface CertificateOptions {
  readonly name: string;
  /** Names and IPv4 addresses that it is good for. */
  readonly hosts?: readonly string[];
  /** UTCTime, `YYMMDDhhmmssZ`. */
  readonly from?: string;
  readonly until?: string;
  readonly issuer?: Certificate;
}

const SEQUENCE = 0x30;
const SET = 0x31;

export function newCertificate(options: CertificateOptions): Certificate {
  const { name, hosts = [], from = "200101000000Z", until = "491231235959Z", issuer } = options;
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const algorithm = der(SEQUENCE, objectId("2a8648ce3d040302")); // ecdsa-with-SHA256
  const body = der(
    SEQUENCE,
    der(0xa0, der(0x02, Buffer.from([2]))), // version 3
    der(0x02, Buffer.from([1 + Math.floor(Math.random() * 100), ...Buffer.from(name)])), // serial number
    algorithm,
    distinguishedName(issuer?.name ?? name),
    der(SEQUENCE, der(0x17, Buffer.from(from)), der(0x17, Buffer.from(until))),
    distinguishedName(name),
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, der(SEQUENCE, ...extensions(hosts))),
  );
  const signature = sign("sha256", body, issuer?.privateKey ?? privateKey);
  const whole = der(SEQUENCE, body, algorithm, der(0x03, Buffer.from([0]), signature));
  return {
    cert: pem(whole),
    key: String(privateKey.export({ type: "pkcs8", format: "pem" })),
    name,
    privateKey,
  };
}

function extensions(hosts: readonly string[]): Buffer[] {
  const names = hosts.map((host) => {
    const octets = host.split(".").map(Number);
    const isAddress = octets.length === 4 && octets.every((octet) => octet < 256);
    return isAddress ? der(0x87, Buffer.from(octets)) : der(0x82, Buffer.from(host));
  });
  const isAuthority = hosts.length === 0;
  const constraints = der(SEQUENCE, ...(isAuthority ? [der(0x01, Buffer.from([0xff]))] : []));
  return [
    der(SEQUENCE, objectId("551d13"), der(0x04, constraints)),
    ...(isAuthority ? [] : [der(SEQUENCE, objectId("551d11"), der(0x04, der(SEQUENCE, ...names)))]),
  ];
}

function distinguishedName(name: string): Buffer {
  return der(SEQUENCE, der(SET, der(SEQUENCE, objectId("550403"), der(0x0c, Buffer.from(name)))));
}

function objectId(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, "hex"));
}

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function pem(bytes: Buffer): string {
  return `-----BEGIN CERTIFICATE-----\n${bytes.toString("base64")}\n-----END CERTIFICATE-----\n`;
}
