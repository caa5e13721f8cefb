/** A name server for tests (RFC 1035): some names change their address with every question, some are never answered. */
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";

/** The addresses of a name, or null for no answer at all. Asked once for each question about IPv4. */
export type Zone = (name: string) => readonly string[] | null;

const A = 1;
const RESPONSE_NO_ERROR = 0x8580;
const NAME_OF_QUESTION = 0xc00c;

export async function startDnsServer(zone: Zone): Promise<Socket> {
  const server = createSocket("udp4");
  server.on("message", (query, { port, address }) => {
    const { name, type, end } = question(query);
    // A name that is dead is so for every type.
    const addresses = type === A ? zone(name) : zone(`aaaa.${name}`) === null ? null : [];
    if (addresses !== null) server.send(answer(query, end, addresses), port, address);
  });
  server.bind(53, "127.0.0.1");
  await once(server, "listening");
  return server;
}

function question(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join(".").toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

/** The question again, and a record without a time to live for each address. */
function answer(query: Buffer, end: number, addresses: readonly string[]): Buffer {
  const head = Buffer.from(query.subarray(0, 12));
  head.writeUInt16BE(RESPONSE_NO_ERROR, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(addresses.length, 6);
  head.writeUInt32BE(0, 8);
  const records = addresses.map((address) => {
    const record = Buffer.alloc(16);
    record.writeUInt16BE(NAME_OF_QUESTION, 0);
    record.writeUInt16BE(A, 2);
    record.writeUInt16BE(1, 4);
    record.writeUInt16BE(4, 10);
    record.set(address.split(".").map(Number), 12);
    return record;
  });
  return Buffer.concat([head, query.subarray(12, end), ...records]);
}
