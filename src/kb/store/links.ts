/** Fetches of links. */
export interface LinkRecords {
  /**
   * Returns the latest fetch of an address for the account; addresses are spelled as by `linkAddress`. The oldest entries
   * are evicted above a bound, and an entry is removed when a resource of its address is deleted or gets another address.
   * A missing entry costs a full response at the next update of a resource of that address.
   */
  linkFetch(accountId: string, url: string): Promise<LinkFetch | undefined>;
  noteLinkFetch(fetch: LinkFetch): Promise<void>;
}

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
