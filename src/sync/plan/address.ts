import { isLoopback } from "../../lib/loopback.ts";

/** The end of an upload's address at a service of this program: 256 random bits and the file's name. */
const UPLOAD = /\/files\/[A-Za-z0-9_-]{43}\/[^/]+$/;

/**
 * Normalises an address. A service may write an address as its library does, and it gives the addresses of its files
 * under the host and port it is reached by now. The random bits alone identify an upload.
 */
export function normalizedAddress(url: string | null | undefined): string | undefined {
  if (url === null || url === undefined) return undefined;
  const parsed = URL.parse(url);
  if (parsed === null) return url;
  const upload = UPLOAD.exec(`${parsed.pathname}${parsed.search}${parsed.hash}`)?.[0];
  if (upload !== undefined) return `upload${upload}`;
  if (!isLoopback(parsed.hostname)) return parsed.href;
  return `loopback${parsed.pathname}${parsed.search}${parsed.hash}`;
}
