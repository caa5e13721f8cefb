/** Bytes that are text, and bytes that are not. */

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text of UTF-8 bytes, or null. A NUL marks bytes that only look like text. */
export function utf8Text(bytes: Uint8Array): string | null {
  try {
    const text = decoder.decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}
