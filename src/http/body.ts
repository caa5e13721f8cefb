/** Reads a request body within the limit, whatever its length header says. */
import type { IncomingMessage } from "node:http";
import { Problem } from "../base/errors.ts";

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The body's text. Throws 413 as soon as it is over the limit, 415 when it is coded, and 400 when it is no JSON text. */
export async function readBody(incoming: IncomingMessage, maxBytes: number): Promise<string> {
  if (Number(incoming.headers["content-length"] ?? 0) > maxBytes) throw tooLarge(maxBytes);
  const bytes = await collect(incoming, maxBytes);
  const coding = incoming.headers["content-encoding"] ?? "";
  if (bytes.length > 0 && !/^(?:identity)?$/i.test(coding)) throw coded(coding);
  const text = decoded(bytes);
  if (text.startsWith("\ufeff"))
    throw new Problem(
      "invalid_json",
      "The body begins with a byte order mark, which JSON must not have (RFC 8259 §8.1); leave out its first three bytes.",
    );
  return text;
}

function decoded(bytes: Buffer): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new Problem("invalid_json", "The body is not UTF-8, which JSON has to be (RFC 8259).");
  }
}

function collect(incoming: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    incoming.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length <= maxBytes) {
        chunks.push(chunk);
      } else {
        // The rest is left unread; the answer closes the connection.
        incoming.pause();
        reject(tooLarge(maxBytes));
      }
    });
    incoming.on("end", () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
    incoming.on("error", () => reject(cutOff()));
    incoming.on("close", () => {
      if (!incoming.complete) reject(cutOff());
    });
  });
}

/** RFC 9110 §12.5.3: the answer names the codings that would have been taken. */
function coded(coding: string): Problem {
  return new Problem(
    "unsupported_media_type",
    `The Content-Encoding cannot be ${coding}; send the JSON as it is, without one.`,
    { headers: { "Accept-Encoding": "identity" } },
  );
}

function cutOff(): Problem {
  return new Problem("invalid_json", "The body ended before its length.");
}

function tooLarge(maxBytes: number): Problem {
  return new Problem("payload_too_large", `The body may have at most ${maxBytes} bytes (ERRAND_MAX_BODY).`, {
    headers: { connection: "close" },
  });
}
