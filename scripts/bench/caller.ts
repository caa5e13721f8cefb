/**
 * One kept-alive connection that makes one request at a time, over a bare socket. An HTTP client costs as much as the
 * server that it calls: on a machine of two cores it would be the client that is measured.
 */
import { connect, type Socket } from "node:net";

export interface Answer {
  readonly status: number;
  readonly text: string;
}

const HEAD_END = "\r\n\r\n";

/** The bytes of a request (RFC 9112). */
export function requestBytes(method: string, url: URL, key: string, body: string | null): Buffer {
  const head = [
    `${method} ${url.pathname}${url.search} HTTP/1.1`,
    `Host: ${url.host}`,
    `Authorization: Bearer ${key}`,
  ];
  if (body !== null)
    head.push("Content-Type: application/json", `Content-Length: ${Buffer.byteLength(body)}`);
  return Buffer.from(`${head.join("\r\n")}${HEAD_END}${body ?? ""}`);
}

export class Caller {
  private readonly socket: Socket;
  private received: Buffer = Buffer.alloc(0);
  private status = 0;
  /** Where the body begins and ends, once the head is here. */
  private body: { readonly from: number; readonly to: number } | null = null;
  private waiting: { resolve: (answer: Answer) => void; reject: (error: Error) => void } | null = null;

  constructor({ hostname, port }: URL) {
    this.socket = connect({ host: hostname, port: Number(port), noDelay: true });
    this.socket.on("data", (chunk) => this.take(chunk));
    this.socket.on("error", (error) => this.waiting?.reject(error));
    this.socket.on("close", () => this.waiting?.reject(new Error("the server closed the connection")));
  }

  call(request: Buffer): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.waiting = { resolve, reject };
      this.socket.write(request);
    });
  }

  close(): void {
    this.socket.destroy();
  }

  private take(chunk: Buffer): void {
    this.received = this.received.length === 0 ? chunk : Buffer.concat([this.received, chunk]);
    if (this.body === null) this.readHead();
    if (this.body === null || this.received.length < this.body.to) return;
    const answer = {
      status: this.status,
      text: this.received.toString("utf8", this.body.from, this.body.to),
    };
    this.received = Buffer.alloc(0);
    this.body = null;
    this.waiting?.resolve(answer);
  }

  private readHead(): void {
    const end = this.received.indexOf(HEAD_END);
    if (end === -1) return;
    const head = this.received.toString("latin1", 0, end);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (length === undefined) throw new Error(`an answer without a length:\n${head}`);
    const from = end + HEAD_END.length;
    this.status = Number(head.slice("HTTP/1.1 ".length, "HTTP/1.1 200".length));
    this.body = { from, to: from + Number(length) };
  }
}
