import { isLoopback } from "../../lib/loopback.ts";

/** What an upload to a service of this program has in its address: 256 random bits and the file's name. */
const UPLOAD = /\/files\/[A-Za-z0-9_-]{43}\/[^/]+$/;

/**
 * An address in one spelling: a service may write one down as its library does, and tells its files' addresses under the
 * host and port that it is reached by now. The random bits alone say which upload it is.
 */
export function spelledAddress(url: string | null | undefined): string | undefined {
  if (url === null || url === undefined) return undefined;
  const parsed = URL.parse(url);
  if (parsed === null) return url;
  const upload = UPLOAD.exec(`${parsed.pathname}${parsed.search}${parsed.hash}`)?.[0];
  if (upload !== undefined) return `upload${upload}`;
  if (!isLoopback(parsed.hostname)) return parsed.href;
  return `loopback${parsed.pathname}${parsed.search}${parsed.hash}`;
}
