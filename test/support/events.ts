/** A reader of `GET /v1/events` that says what it got, written from the specification and not from the server's code. */
import { request } from "node:http";
import type { TestApp } from "./app.ts";

interface SeenEvent {
  readonly id: string;
  readonly event: string;
  readonly data: Record<string, any>;
}

export interface EventReader {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly seen: readonly SeenEvent[];
  /** The text of the stream so far. */
  readonly text: () => string;
  /** The last event id as a browser would keep it. */
  readonly lastId: () => string;
  /** Resolves with the first event that fits, one that has come already included. */
  until(fits: (event: SeenEvent) => boolean): Promise<SeenEvent>;
  /** Resolves when the stream's text holds this. */
  untilText(part: string): Promise<void>;
  /** Resolves when the server has ended the stream. */
  readonly ended: Promise<void>;
  close(): void;
}

export interface ReadOptions {
  readonly path?: string;
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export function readEvents(
  app: Pick<TestApp, "url" | "key">,
  { path = "/v1/events", key = app.key, headers = {} }: ReadOptions = {},
): Promise<EventReader> {
  return new Promise((resolve, reject) => {
    const outgoing = request(app.url + path, { headers: { authorization: `Bearer ${key}`, ...headers } });
    outgoing.on("error", reject);
    outgoing.on("response", (incoming) => {
      const seen: SeenEvent[] = [];
      const looks = new Set<() => void>();
      const { promise: ended, resolve: end } = Promise.withResolvers<void>();
      let text = "";
      let parsed = 0;
      let lastId = "";
      incoming.setEncoding("utf8");
      incoming.on("data", (chunk: string) => {
        text += chunk;
        for (let stop = text.indexOf("\n\n", parsed); stop >= 0; stop = text.indexOf("\n\n", parsed)) {
          const fields = fieldsOf(text.slice(parsed, stop));
          parsed = stop + 2;
          lastId = fields["id"] ?? lastId;
          if (fields["data"] !== undefined)
            seen.push({ id: lastId, event: fields["event"] ?? "message", data: JSON.parse(fields["data"]) });
        }
        for (const look of looks) look();
      });
      incoming.on("end", end);
      incoming.on("error", () => end());
      /** Looks at once and after each chunk until `found` answers something. */
      const when = <T>(found: () => T | undefined) =>
        new Promise<T>((done) => {
          const look = () => {
            const value = found();
            if (value === undefined) return;
            looks.delete(look);
            done(value);
          };
          looks.add(look);
          look();
        });
      const firstThat = (fits: (event: SeenEvent) => boolean) => {
        let next = 0;
        return () => {
          while (next < seen.length) {
            const event = seen[next++]!;
            if (fits(event)) return event;
          }
          return undefined;
        };
      };
      resolve({
        status: incoming.statusCode ?? 0,
        headers: incoming.headers,
        seen,
        text: () => text,
        lastId: () => lastId,
        until: (fits) => when(firstThat(fits)),
        untilText: async (part) => void (await when(() => (text.includes(part) ? true : undefined))),
        ended,
        close: () => incoming.destroy(),
      });
    });
    outgoing.end();
  });
}

/** The fields of one event; comments begin with a colon and say nothing. */
function fieldsOf(block: string): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).replace(/^ /, "");
  }
  return fields;
}
