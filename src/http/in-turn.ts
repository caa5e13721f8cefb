/** One request of a connection at a time, though HTTP/1.1 lets a client send more before it has read an answer. */
import type { RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Requests that may wait on one connection; whoever sends on without reading is cut off. */
const MAX_WAITING = 100;

/** What has come on one connection and is not answered. */
interface Turn {
  last: ServerResponse;
  waiting: number;
}

/**
 * A listener that answers the next request of a connection when the one before is answered and sent (RFC 9112 §9.3.2
 * has the answers in that order anyhow). A hundred that were sent in one go were answered at once: pages of responses,
 * 2 GB of them, waited for somebody to read the first.
 */
export function inTurn(answer: RequestListener): RequestListener {
  const turns = new WeakMap<Socket, Turn>();
  return (incoming, outgoing) => {
    const { socket } = incoming;
    const turn = turns.get(socket);
    if (turn === undefined || turn.last.writableFinished) {
      turns.set(socket, { last: outgoing, waiting: 0 });
      answer(incoming, outgoing);
      return;
    }
    const before = turn.last;
    turn.last = outgoing;
    turn.waiting += 1;
    if (turn.waiting > MAX_WAITING) socket.destroy();
    before.once("close", () => {
      turn.waiting -= 1;
      if (!socket.destroyed) answer(incoming, outgoing);
    });
  };
}
