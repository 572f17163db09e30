import { type FetcherOptions, type LinkAnswer, openFetcher } from "../../kb/fetch/fetcher.ts";
import { KbsyncError } from "../../lib/failure.ts";
import type { ReadDocument } from "../../mcp/oauth/clients.ts";

/** Largest metadata document of a client. */
const DOCUMENT_BYTES_MAX = 64 * 1024;
/** Longest time for it, while a person waits. */
const DOCUMENT_MS = 5000;

/** Returns a reader of metadata documents at public addresses. Tests set `guard`. */
export function openDocumentReader(
  version: string,
  guard: Pick<FetcherOptions, "allow" | "resolve"> = { allow: [] },
): ReadDocument {
  const fetcher = openFetcher({
    ...guard,
    agent: `kbsync/${version}`,
    bytesMax: DOCUMENT_BYTES_MAX,
    timeoutMs: DOCUMENT_MS,
    busy: () => new KbsyncError("too many documents are read", { code: "overloaded", retryable: true }),
  });
  return async (url, signal) => {
    fetcher.refuse(url);
    const take = async (answer: LinkAnswer): Promise<string> => {
      // The document is who the client is: another address cannot speak for it.
      if (answer.url.href !== url.href)
        throw new KbsyncError("the address redirects", { code: "link_refused", subject: url.host });
      const pieces: Uint8Array[] = [];
      for await (const piece of answer.body) pieces.push(piece);
      return Buffer.concat(pieces).toString("utf8");
    };
    return fetcher.fetch(url, undefined, take, { signal });
  };
}
