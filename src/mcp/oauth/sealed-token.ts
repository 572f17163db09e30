import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";

/** AES in Galois/Counter Mode with a random nonce: 2^32 tokens under one secret (NIST SP 800-38D, 8.3). */
const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const PREFIX = "kbt_";

/** Hides secrets of the service in the tokens of clients. */
export interface TokenSeal {
  /** Returns a token for an audience alone (RFC 8707). */
  seal(secret: string, audience: readonly string[]): string;
  /** Returns the secret in a token; undefined for a token of another audience or seal, and for any other text. */
  open(token: string, audience: readonly string[]): string | undefined;
}

/** Whether a text has the form of a sealed token. */
export function isSealed(token: string): boolean {
  return token.startsWith(PREFIX);
}

/**
 * Opens the seal with a secret of the server. A client that had the service's key itself could use it at the service, and at
 * other servers in front of it. The server needs no record of its tokens; another secret makes all of them invalid.
 */
export function openTokenSeal(serverSecret: string): TokenSeal {
  const cipherKey = createHash("sha256").update(serverSecret).digest();
  const boundTo = (audience: readonly string[]): Buffer => Buffer.from(JSON.stringify(audience));
  return {
    seal: (secret, audience) => {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, cipherKey, nonce).setAAD(boundTo(audience));
      const hidden = Buffer.concat([cipher.update(secret, "utf8"), cipher.final()]);
      return PREFIX + Buffer.concat([nonce, cipher.getAuthTag(), hidden]).toString("base64url");
    },
    open: (token, audience) => {
      const bytes = Buffer.from(token.slice(PREFIX.length), "base64url");
      // One spelling of each token: the decoder ignores other characters.
      if (token !== PREFIX + bytes.toString("base64url")) return undefined;
      if (bytes.length <= NONCE_BYTES + TAG_BYTES) return undefined;
      const nonce = bytes.subarray(0, NONCE_BYTES);
      const decipher = createDecipheriv(CIPHER, cipherKey, nonce, { authTagLength: TAG_BYTES })
        .setAAD(boundTo(audience))
        .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      const secret = decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES));
      try {
        return Buffer.concat([secret, decipher.final()]).toString("utf8");
      } catch {
        return undefined; // sealed by nobody here, or for another audience
      }
    },
  };
}
