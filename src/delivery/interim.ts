/**
 * Lets a `100 Continue` go before a response. A client has to pass over one that it did not ask for (RFC 9110 §15.2),
 * and some servers send it on every POST, but undici takes it for a fault. (It passes over 102 and 103 by itself.)
 */
import type { Socket } from "node:net";

const CONTINUE = Buffer.from("HTTP/1.1 100");
const END_OF_HEADERS = "\r\n\r\n";

/** A `100 Continue` has few headers or none; a longer one is left to the parser, which refuses it. */
const MAX_BYTES = 4_096;

/**
 * From now on the socket's `read` leaves out any `100 Continue` that stands where a response begins. What it returns is
 * to be called before each request, to say that what is read next is the beginning of a response.
 */
export function passOverContinue(socket: Socket): () => void {
  const read = socket.read.bind(socket);
  let isAtStart = false;
  let held: Buffer | null = null;
  socket.read = (size) => {
    // Null tells the reader to wait for more to come, so what has come already is looked through first.
    for (;;) {
      const chunk: unknown = read(size);
      if (!isAtStart || !Buffer.isBuffer(chunk)) return chunk;
      const rest = afterContinue(held === null ? chunk : Buffer.concat([held, chunk]));
      isAtStart = mayBeContinue(rest);
      held = isAtStart ? rest : null;
      if (!isAtStart) return rest;
    }
  };
  return () => {
    isAtStart = true;
  };
}

/** What follows the whole 100 responses at the beginning of these bytes. */
function afterContinue(bytes: Buffer): Buffer {
  let rest = bytes;
  while (rest.length >= CONTINUE.length && startsAlike(rest)) {
    const end = rest.indexOf(END_OF_HEADERS);
    if (end === -1) break;
    rest = rest.subarray(end + END_OF_HEADERS.length);
  }
  return rest;
}

/** Whether these bytes, which are no whole 100 response, may still become one. */
function mayBeContinue(bytes: Buffer): boolean {
  return bytes.length <= MAX_BYTES && startsAlike(bytes);
}

function startsAlike(bytes: Buffer): boolean {
  const length = Math.min(bytes.length, CONTINUE.length);
  return bytes.compare(CONTINUE, 0, length, 0, length) === 0;
}
