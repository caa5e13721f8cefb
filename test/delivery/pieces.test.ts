/** What a target sends reaches the parser in small pieces, and none of it once the connection was ended. */
import assert from "node:assert/strict";
import { Socket } from "node:net";
import { test } from "node:test";
import { readInPieces } from "../../src/delivery/pieces.ts";

test("however much has come, a read returns a small piece, and nothing once the connection was ended", () => {
  const socket = new Socket();
  readInPieces(socket);
  socket.push(Buffer.alloc(64 * 1024));
  assert.equal(socket.read().length, 4 * 1024);
  socket.destroy();
  assert.equal(socket.read(), null);
});
