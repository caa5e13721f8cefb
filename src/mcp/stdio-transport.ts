/** JSON-RPC messages as lines of stdin and stdout, payloads in them as raw values: the SDK's own transport loses those. */
import type { Readable, Writable } from "node:stream";
import { type JSONRPCMessage, parseJSONRPCMessage, type Transport } from "@modelcontextprotocol/server";
import { readMessage } from "./message.ts";
import type { StructuredTexts } from "./structured.ts";

/** JSON-RPC 2.0 §5.1. */
const INVALID_REQUEST = -32_600;

export class LineTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  private readonly input: Readable;
  private readonly output: Writable;
  private readonly texts: StructuredTexts;
  /** The line that has not ended yet. */
  private begun: Buffer[] = [];
  /** Requests that wait for their answer. */
  private readonly asked = new Set<unknown>();
  private ended = false;
  private closed = false;

  constructor(input: Readable, output: Writable, texts: StructuredTexts) {
    this.input = input;
    this.output = output;
    this.texts = texts;
  }

  async start(): Promise<void> {
    this.input.on("data", this.take);
    this.input.once("close", this.end);
    this.input.once("end", this.end);
    // The client is gone: there is nobody to tell.
    this.output.on("error", () => void this.close());
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.closed) return;
    // Some readers of lines end one here, too; in JSON these two stand in strings only, where they may be escaped.
    const line = this.texts.weave(JSON.stringify(message));
    this.output.write(`${line.replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029")}\n`);
    if ("id" in message && !("method" in message)) this.answered(message.id);
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.input.off("data", this.take);
    this.input.pause();
    this.onclose?.();
  }

  /** What was asked before the input ended is still answered, as a pipe's reader expects. */
  private readonly end = (): void => {
    if (this.ended || this.closed) return;
    this.take(Buffer.from("\n"));
    this.ended = true;
    if (this.asked.size === 0) void this.close();
  };

  private answered(id: unknown): void {
    this.asked.delete(id);
    if (this.ended && this.asked.size === 0) void this.close();
  }

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
      const message = parseJSONRPCMessage(read.message);
      if ("method" in message && "id" in message) this.asked.add(message.id);
      this.onmessage?.(message);
      // A request that was cancelled gets no answer.
      if ("method" in message && message.method === "notifications/cancelled")
        this.answered(message.params?.["requestId"]);
    } catch (error) {
      const message = "This is no JSON-RPC message.";
      void this.send({ jsonrpc: "2.0", error: { code: INVALID_REQUEST, message } });
      this.onerror?.(error instanceof Error ? error : new Error(String(error)));
    }
  }
}

const NEWLINE = 0x0a;
