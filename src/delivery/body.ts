/** The body of a response as it arrives, up to the limit of what is kept. */
import { MAX_RESPONSE_BYTES } from "../jobs/outcome.ts";

const FIRST_GROWTH_BYTES = 16 * 1024;

/**
 * Pieces are copied together as they come: kept one by one, a megabyte sent byte by byte would take hundreds of megabytes.
 */
export class ResponseBody {
  #bytes: Uint8Array = new Uint8Array(0);
  #length = 0;

  /** False when the piece went beyond the limit; what fits of it is kept. */
  add(piece: Uint8Array): boolean {
    const fitting = piece.subarray(0, MAX_RESPONSE_BYTES - this.#length);
    if (this.#length === 0) {
      this.#bytes = fitting;
    } else {
      this.#grow(this.#length + fitting.length);
      this.#bytes.set(fitting, this.#length);
    }
    this.#length += fitting.length;
    return fitting.length === piece.length;
  }

  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** The first piece is kept where it is, in a buffer of the socket's; it fills it, so the second one always moves it. */
  #grow(needed: number): void {
    if (this.#bytes.length >= needed) return;
    const doubled = Math.max(2 * needed, FIRST_GROWTH_BYTES);
    const grown = new Uint8Array(Math.min(doubled, MAX_RESPONSE_BYTES));
    grown.set(this.bytes());
    this.#bytes = grown;
  }
}
