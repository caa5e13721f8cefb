/** Bytes sent to a port as they are, for requests that no HTTP client would make. */
import { connect } from "node:net";

export interface RawAnswer {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** Sends each chunk and answers what came back until the server closed the connection or one whole answer was read. */
export function rawRequest(port: number, ...chunks: readonly (string | Uint8Array)[]): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    let received = "";
    const end = () => {
      socket.destroy();
      const answer = parse(received);
      if (answer === null) reject(new Error(`no whole answer: ${JSON.stringify(received)}`));
      else resolve(answer);
    };
    socket.setEncoding("utf8");
    socket.on("data", (chunk: string) => {
      received += chunk;
      if (parse(received) !== null) end();
    });
    socket.on("close", end);
    socket.on("error", (error) => {
      if (parse(received) === null) reject(error);
    });
    for (const chunk of chunks) socket.write(chunk);
  });
}

function parse(text: string): RawAnswer | null {
  const split = text.indexOf("\r\n\r\n");
  if (split < 0) return null;
  const [first = "", ...lines] = text.slice(0, split).split("\r\n");
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
    }),
  );
  const body = text.slice(split + 4);
  if (Buffer.byteLength(body) < Number(headers.get("content-length") ?? 0)) return null;
  return { status: Number(first.split(" ")[1]), headers, body };
}
