/**
 * Hands what a target sends to the parser in small pieces. undici parses each piece to its end, and of headers or
 * trailers that are over the limit it makes an error for every single line: in a piece of 64 KiB those are thousands,
 * and a hundred targets that pour out headers held up every other delivery for seconds.
 */
import type { Socket } from "node:net";

const PIECE_BYTES = 4 * 1024;

/** From now on the socket's `read` returns at most {@link PIECE_BYTES}, and nothing once it is destroyed. */
export function readInPieces(socket: Socket): void {
  const read = socket.read.bind(socket);
  socket.read = (size) => {
    if (socket.destroyed) return null;
    const waiting = socket.readableLength;
    return read(size ?? (waiting > PIECE_BYTES ? PIECE_BYTES : undefined)) as unknown;
  };
}
