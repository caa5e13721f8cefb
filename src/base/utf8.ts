/** Bytes that are text, and bytes that are not. */

const newDecoder = () => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const decoder = newDecoder();

/**
 * The text of UTF-8 bytes, or null. A NUL marks bytes that only look like text, and so do control characters when they
 * are more than a quarter: in JSON each takes six characters, so that a page of such responses came to 56 MB. Bytes that
 * were `cut` may end within a character, which is then left out.
 */
export function utf8Text(bytes: Uint8Array, cut = false): string | null {
  try {
    const text = cut ? newDecoder().decode(bytes, { stream: true }) : decoder.decode(bytes);
    return text.includes("\0") || isMostlyControl(bytes) ? null : text;
  } catch {
    return null;
  }
}

function isMostlyControl(bytes: Uint8Array): boolean {
  let count = 0;
  // Tab and line ends are text.
  for (const byte of bytes) if (byte < 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d) count += 1;
  return count > bytes.length / 4;
}
