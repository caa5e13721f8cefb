/** Bytes that are text, and bytes that are not. */

const newDecoder = () => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const decoder = newDecoder();

/**
 * The text of UTF-8 bytes, or null. A NUL marks bytes that only look like text. Bytes that were `cut` may end within a
 * character, which is then left out.
 */
export function utf8Text(bytes: Uint8Array, cut = false): string | null {
  try {
    const text = cut ? newDecoder().decode(bytes, { stream: true }) : decoder.decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}
