/** Secrets at rest: AES-256-GCM (NIST SP 800-38D) under a key that lives outside the database file. */
import { createCipheriv, createDecipheriv, createHash, createSecretKey, randomBytes } from "node:crypto";

const ALGORITHM = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Characters of the shortest key that is taken. */
export const MIN_SECRET_KEY = 32;

export interface SecretBox {
  /** Base64 of nonce, ciphertext and tag. Equal texts give different answers. */
  seal(text: string): string;
  /** The text again. Throws when it was sealed with another key or was changed. */
  open(sealed: string): string;
}

/** A box for a key of {@link MIN_SECRET_KEY} characters or more; what is given is hashed to the 256 bits that the cipher takes. */
export function secretBox(keyText: string): SecretBox {
  // As a key object: given bare bytes, each call takes some 20 µs to find out what kind of key they are.
  const key = createSecretKey(createHash("sha256").update(keyText).digest());
  return {
    seal(text) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(ALGORITHM, key, nonce);
      const sealed = Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
      return sealed.toString("base64");
    },
    open(sealed) {
      const bytes = Buffer.from(sealed, "base64");
      const end = bytes.length - TAG_BYTES;
      const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAuthTag(bytes.subarray(end));
      return decipher.update(bytes.subarray(NONCE_BYTES, end), undefined, "utf8") + decipher.final("utf8");
    },
  };
}
