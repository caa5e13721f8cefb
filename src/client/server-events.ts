/** Reads Server-Sent Events (https://html.spec.whatwg.org/multipage/server-sent-events.html). */

export interface ServerEvent {
  /** To be given as `Last-Event-ID` when the stream is taken up again. */
  readonly id: string | null;
  readonly type: string;
  readonly data: string;
}

/**
 * The events of a stream, in order; comments, which only keep the connection alive, are left out. An id may come without
 * data: such an event says only how far the stream has come.
 */
export async function* readEvents(stream: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder();
  let rest = "";
  let event = new EventFields();
  for await (const chunk of stream) {
    rest += decoder.decode(chunk, { stream: true });
    // A CR at the end of a chunk may be the first half of a CRLF.
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line !== "") {
        event.take(line);
        continue;
      }
      if (!event.isEmpty) yield event.whole();
      event = new EventFields();
    }
  }
}

class EventFields {
  private id: string | null = null;
  private type = "message";
  private readonly data: string[] = [];

  get isEmpty(): boolean {
    return this.id === null && this.data.length === 0;
  }

  take(line: string): void {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.data.push(value);
    else if (name === "event") this.type = value;
    else if (name === "id") this.id = value;
  }

  whole(): ServerEvent {
    return { id: this.id, type: this.type, data: this.data.join("\n") };
  }
}
