/** Requests that never become one: what Node's parser refuses is answered as every other error is. */
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { RequestError } from "@hono/node-server";
import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import { newId } from "../base/ids.ts";
import { PROBLEM_JSON, problemDocument } from "./problem.ts";
import { SAFE_HEADERS } from "./safe-headers.ts";

/** Answers parse errors and timeouts of Node's HTTP server with a problem document and a request id. */
export function answerMalformed(server: Server, clock: Clock): void {
  /** The answer that each connection is waiting for, or got last. */
  const answers = new WeakMap<Duplex, ServerResponse>();
  server.prependListener("request", (incoming: IncomingMessage, outgoing: ServerResponse) => {
    answers.set(incoming.socket, outgoing);
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => {
    const answer = answers.get(socket);
    const isAnswering = answer !== undefined && answer.headersSent && !answer.writableEnded;
    // Bytes in the middle of an answer would be taken for a part of it.
    if (error.code === "ECONNRESET" || !socket.writable || isAnswering) {
      socket.destroy();
      return;
    }
    socket.end(message(malformed(error), newId("req", clock.now())));
  });
}

/** The problem that an error of Node's parser, or of the framework before the first middleware, stands for. */
export function malformed(error: NodeJS.ErrnoException): Problem {
  if (error instanceof RequestError)
    return new Problem(
      "malformed_request",
      `The request line or the Host header is wrong: ${error.message}.`,
    );
  switch (error.code) {
    case "HPE_HEADER_OVERFLOW":
      return new Problem(
        "headers_too_large",
        "The request line and headers together are over 16 KiB; send less.",
      );
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new Problem("request_timeout", "The request did not come to its end in time; send it again.");
    default:
      return new Problem("malformed_request", "This is not a well-formed HTTP/1.1 request (RFC 9112).");
  }
}

function message(problem: Problem, requestId: string): string {
  const body = JSON.stringify(problemDocument(problem, requestId));
  return [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    `Content-Type: ${PROBLEM_JSON}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    ...SAFE_HEADERS.map(([name, value]) => `${name}: ${value}`),
    "Connection: close",
    "",
    body,
  ].join("\r\n");
}
