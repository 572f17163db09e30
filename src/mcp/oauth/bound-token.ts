import { createHmac, timingSafeEqual } from "node:crypto";

/** A secret of the service with a code that says for what it was issued. */
const BOUND = /^(kb[\w-]{20,200})\.([\w-]{43})$/;

/**
 * Returns a token that is valid for an audience alone (RFC 8707): the service's secret and, keyed by it, a code of the
 * audience. The server needs no record of it.
 */
export function boundToken(secret: string, audience: readonly string[]): string {
  return `${secret}.${codeOf(secret, audience)}`;
}

/** Whether a text has the form of a bound token. */
export function isBoundToken(token: string): boolean {
  return BOUND.test(token);
}

/** Returns the secret in a bound token; undefined if it was issued for another audience, or is none. */
export function secretOf(token: string, audience: readonly string[]): string | undefined {
  const [, secret, code] = BOUND.exec(token) ?? [];
  if (secret === undefined || code === undefined) return undefined;
  return timingSafeEqual(Buffer.from(code), Buffer.from(codeOf(secret, audience))) ? secret : undefined;
}

function codeOf(secret: string, audience: readonly string[]): string {
  return createHmac("sha256", secret).update(JSON.stringify(audience)).digest("base64url");
}
