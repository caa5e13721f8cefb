/** Writes a stream of outputs as Server-Sent Events (WHATWG HTML §9.2), never faster than the reader reads. */
import type { ServerResponse } from "node:http";
import type { Clock } from "../base/clock.ts";
import { stringify } from "../base/json.ts";
import type { Stream, StreamItem } from "../operations/operation.ts";

export const EVENT_STREAM = "text/event-stream";

/** How often a silent connection shows that it lives; a reader that cannot even take that twice is gone. */
export const HEARTBEAT_MS = 15_000;
/** Items written in one piece. */
const PIECE = 100;
/** How long a reader whose connection broke is to wait before it comes back. */
const RECONNECT_MS = 2_000;

/**
 * Writes until the reader goes, the stream ends, or the reader falls so far behind that items are lost. What a reader
 * has not taken yet stays where it is kept for all: one connection holds at most one piece of its own, and a reader that
 * stalls is in nobody's way.
 */
export function writeEvents(stream: Stream, outgoing: ServerResponse, clock: Clock): void {
  let missedBeats = 0;
  let stopBeating = () => {};

  const write = () => {
    if (stream.ended) return void outgoing.end();
    while (!outgoing.writableNeedDrain) {
      const items = stream.read(PIECE);
      if (items === null) return void outgoing.destroy();
      if (items.length === 0) return;
      outgoing.write(items.map(frame).join(""));
    }
  };

  const beat = () => {
    // It was ended, and the reader does not take what is left.
    if (stream.ended) return void outgoing.destroy();
    if (!outgoing.writableNeedDrain) {
      // With the id, a reader that comes back after a long silence need not go back to the last event it saw.
      outgoing.write(`: alive\nid: ${stream.id}\n\n`);
    } else {
      missedBeats += 1;
      if (missedBeats === 2) return void outgoing.destroy();
    }
    stopBeating = clock.timer(HEARTBEAT_MS, beat);
  };

  outgoing.writeHead(200, { "content-type": EVENT_STREAM, "x-accel-buffering": "no" });
  const first = stream.read(PIECE) ?? [];
  // Where the stream begins is said only when nothing else is: a reader that was cut off before it got its reset must
  // not come back with an id that hides that it needs one.
  const begin = first.length === 0 ? `id: ${stream.id}\n\n` : first.map(frame).join("");
  outgoing.write(`retry: ${RECONNECT_MS}\n\n${begin}`);
  const stopListening = stream.listen(write);
  outgoing.on("drain", () => {
    missedBeats = 0;
    write();
  });
  outgoing.on("close", () => {
    stopListening();
    stopBeating();
  });
  stopBeating = clock.timer(HEARTBEAT_MS, beat);
  write();
}

/** Streams may share their items: written for each of a hundred readers anew, a batch of jobs took half a second. */
const frames = new WeakMap<StreamItem, string>();

function frame(item: StreamItem): string {
  const known = frames.get(item);
  if (known !== undefined) return known;
  const { id, type, data } = item;
  const written = `id: ${id}\nevent: ${type}\ndata: ${stringify(data)}\n\n`;
  frames.set(item, written);
  return written;
}
