/**
 * Hands what a target sends to the parser in small pieces, and not without end.
 *
 * undici parses each piece to its end, and of headers or trailers that are over the limit it makes an error for every
 * single line: in a piece of 64 KiB those are thousands, and a hundred targets that pour out headers held up every
 * other delivery for seconds. Of 1xx responses it takes any number.
 */
import type { Socket } from "node:net";
import { errors } from "undici";

const PIECE_BYTES = 4 * 1024;

/** All that may come before a response is there: its headers, and the 1xx responses before it. */
const MAX_BYTES_BEFORE = 128 * 1024;

export interface Reading {
  /** A request is about to be written. */
  expectResponse(): void;
  /** The headers of its response have come; a body has limits of its own. */
  responseBegan(): void;
}

/** From now on the socket's `read` returns at most {@link PIECE_BYTES}, and nothing once it is destroyed. */
export function readInPieces(socket: Socket): Reading {
  const read = socket.read.bind(socket);
  let isBefore = false;
  let bytesBefore = 0;
  socket.read = (size) => {
    if (isBefore && bytesBefore > MAX_BYTES_BEFORE) socket.destroy(new errors.HeadersOverflowError());
    if (socket.destroyed) return null;
    const waiting = socket.readableLength;
    const piece: unknown = read(size ?? (waiting > PIECE_BYTES ? PIECE_BYTES : undefined));
    if (Buffer.isBuffer(piece)) bytesBefore += piece.length;
    return piece;
  };
  return {
    expectResponse() {
      isBefore = true;
      bytesBefore = 0;
    },
    responseBegan() {
      isBefore = false;
    },
  };
}
