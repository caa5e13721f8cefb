/** Structured results that are JSON text already: put into the message as they are, neither parsed nor written again. */
import { randomUUID } from "node:crypto";

/** Unguessable, so that no user's value can be taken for it. */
const MARK = `json:${randomUUID()}`;
const MARKED = new RegExp(`\\{"${MARK}":(\\d+)\\}`, "g");

/**
 * The texts of the messages of one connection, or of one request. The SDK writes messages from values, but to make
 * values of a page of responses and to write those again takes seconds and hundreds of megabytes.
 */
export class StructuredTexts {
  private readonly texts = new Map<string, string>();
  private count = 0;

  /** What stands for the text, that of an object, in a result. */
  put(text: string): Record<string, unknown> {
    this.count += 1;
    // Line ends, which in JSON stand between values only, would end the message's line.
    this.texts.set(String(this.count), text.replaceAll(/[\r\n]+/g, " "));
    return { [MARK]: this.count };
  }

  /** The written message with each text in its place. */
  weave(message: string): string {
    if (this.texts.size === 0) return message;
    return message.replaceAll(MARKED, (_, number: string) => {
      const text = this.texts.get(number);
      if (text === undefined) throw new Error(`structured content ${number} was written twice`);
      this.texts.delete(number);
      return text;
    });
  }
}
