/** The validators that a link's server sent with a text. They hold whatever happened to the resource afterwards. */
export interface LinkFetch {
  readonly accountId: string;
  readonly url: string;
  /** SHA-256 of the text extracted from the response, 64 hex digits. */
  readonly textSha256: string;
  readonly etag: string | null;
  readonly lastModified: string | null;
}

/** Normalises a link's address: removes the fragment, which is never sent. */
export function linkAddress(given: string): string {
  const url = new URL(given);
  url.hash = "";
  return url.href;
}
