import { createHmac, randomBytes } from "node:crypto";

/** Prefix of every signing secret (Standard Webhooks). */
const SECRET_PREFIX = "whsec_";
/** Bytes of a new secret; the standard requires 24 to 64. */
const SECRET_BYTES = 32;
export const SECRET_BYTES_MIN = 24;
export const SECRET_BYTES_MAX = 64;

/** Returns a new secret: the prefix and 256 random bits in base64. */
export function newSecret(): string {
  return SECRET_PREFIX + randomBytes(SECRET_BYTES).toString("base64");
}

/** Reports whether a text is a valid secret: the prefix and 24 to 64 bytes in base64. */
export function isSecret(text: string): boolean {
  const encoded = text.startsWith(SECRET_PREFIX) ? text.slice(SECRET_PREFIX.length) : "";
  const bytes = Buffer.from(encoded, "base64");
  const isCanonical = bytes.toString("base64").replace(/=+$/, "") === encoded.replace(/=+$/, "");
  return isCanonical && bytes.length >= SECRET_BYTES_MIN && bytes.length <= SECRET_BYTES_MAX;
}

/**
 * Returns the three headers of a message (https://www.standardwebhooks.com): its id, the time of the attempt, and a signature of
 * both and the body. Without a secret there is no signature.
 */
export function signedHeaders(
  message: { readonly id: string; readonly body: string },
  secret: string | undefined,
  nowMs: number,
): Record<string, string> {
  const timestamp = String(Math.floor(nowMs / 1000));
  const headers = { "webhook-id": message.id, "webhook-timestamp": timestamp };
  if (secret === undefined) return headers;
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), "base64");
  const mac = createHmac("sha256", key).update(`${message.id}.${timestamp}.${message.body}`);
  return { ...headers, "webhook-signature": `v1,${mac.digest("base64")}` };
}
