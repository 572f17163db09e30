import { type FetcherOptions, type LinkAnswer, openFetcher } from "../../kb/fetch/fetcher.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { readText } from "../../lib/read-text.ts";
import type { ReadDocument } from "../../mcp/oauth/clients.ts";

/** Largest metadata document of a client. */
const DOCUMENT_BYTES_MAX = 64 * 1024;
/** Longest time for it, while a person waits. */
const DOCUMENT_MS = 5000;

/** `application/json`, or JSON of a more special kind. Hosts of other people's texts send those as plain text. */
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i;

/**
 * Returns a reader of metadata documents at public addresses. It follows no redirect and takes no other type than JSON
 * (https://datatracker.ietf.org/doc/html/draft-ietf-oauth-client-id-metadata-document). Tests set `guard`.
 */
export function openDocumentReader(
  version: string,
  guard: Pick<FetcherOptions, "allow" | "resolve"> = { allow: [] },
): ReadDocument {
  const fetcher = openFetcher({
    ...guard,
    agent: `kbsync/${version}`,
    bytesMax: DOCUMENT_BYTES_MAX,
    timeoutMs: DOCUMENT_MS,
    redirectsMax: 0,
    accept: "application/json",
    busy: () => new KbsyncError("too many documents are read", { code: "overloaded", retryable: true }),
  });
  return async (url, signal) => {
    fetcher.refuse(url);
    const take = async ({ contentType, body }: LinkAnswer): Promise<string> => {
      if (!JSON_TYPE.test(contentType ?? ""))
        throw new KbsyncError("its answer is not JSON", { code: "link_failed", subject: url.host });
      return readText(body, DOCUMENT_BYTES_MAX);
    };
    return fetcher.fetch(url, undefined, take, { signal });
  };
}
