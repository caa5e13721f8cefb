/** The body of a response as it arrives, up to the limit of what is kept. */
import { MAX_RESPONSE_BYTES } from "../jobs/outcome.ts";

const FIRST_GROWTH_BYTES = 16 * 1024;

/**
 * Pieces are copied together as they come: kept one by one, a megabyte sent byte by byte would take hundreds of megabytes.
 */
export class ResponseBody {
  #bytes: Uint8Array = new Uint8Array(0);
  #length = 0;
  /** Grows in place: copies left behind would be as much again. */
  #growing: ArrayBuffer | null = null;

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
    const length = Math.min(Math.max(2 * needed, FIRST_GROWTH_BYTES), MAX_RESPONSE_BYTES);
    if (this.#growing === null) {
      this.#growing = new ArrayBuffer(length, { maxByteLength: MAX_RESPONSE_BYTES });
      const grown = new Uint8Array(this.#growing);
      grown.set(this.bytes());
      this.#bytes = grown;
    } else {
      this.#growing.resize(length);
    }
  }
}
