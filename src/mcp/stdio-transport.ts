/** JSON-RPC messages as lines of stdin and stdout, payloads in them as raw values: the SDK's own transport loses those. */
import type { Readable, Writable } from "node:stream";
import { type JSONRPCMessage, parseJSONRPCMessage, type Transport } from "@modelcontextprotocol/server";
import { readMessage } from "./message.ts";

/** JSON-RPC 2.0 §5.1. */
const INVALID_REQUEST = -32_600;

export class LineTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  private readonly input: Readable;
  private readonly output: Writable;
  /** The line that has not ended yet. */
  private begun: Buffer[] = [];
  private closed = false;

  constructor(input: Readable, output: Writable) {
    this.input = input;
    this.output = output;
  }

  async start(): Promise<void> {
    this.input.on("data", this.take);
    this.input.once("close", this.end);
    this.input.once("end", this.end);
    // The client is gone: there is nobody to tell.
    this.output.on("error", this.end);
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.closed) return;
    // Some readers of lines end one here, too; in JSON these two stand in strings only, where they may be escaped.
    const line = JSON.stringify(message).replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");
    this.output.write(`${line}\n`);
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.input.off("data", this.take);
    this.input.pause();
    this.onclose?.();
  }

  private readonly end = (): void => void this.close();

  private readonly take = (chunk: Buffer): void => {
    let start = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, start)) {
      this.begun.push(chunk.subarray(start, at));
      const line = Buffer.concat(this.begun).toString("utf8");
      this.begun = [];
      start = at + 1;
      if (line.trim() !== "") this.read(line);
    }
    if (start < chunk.length) this.begun.push(chunk.subarray(start));
  };

  private read(line: string): void {
    const read = readMessage(line);
    if ("fault" in read) {
      void this.send(read.fault);
      return;
    }
    try {
      this.onmessage?.(parseJSONRPCMessage(read.message));
    } catch (error) {
      const message = "This is no JSON-RPC message.";
      void this.send({ jsonrpc: "2.0", error: { code: INVALID_REQUEST, message } });
      this.onerror?.(error instanceof Error ? error : new Error(String(error)));
    }
  }
}

const NEWLINE = 0x0a;
