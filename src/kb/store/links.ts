/** What the server of a link said of a text it sent: a fact by itself, whatever became of the resource. */
export interface LinkFetch {
  readonly accountId: string;
  readonly url: string;
  /** SHA-256 of the text that was made of the answer, 64 hex digits. */
  readonly textSha256: string;
  readonly etag: string | null;
  readonly lastModified: string | null;
}

/** What is known of links fetched before, to ask whether they changed. */
export interface LinkStore {
  /**
   * The latest fetch of that address for the account, given and noted as `linkAddress` spells it. The oldest of very many
   * may be forgotten, and it is when a resource of that address is deleted or leads elsewhere: another resource of it
   * costs a full answer at its next update.
   */
  linkFetch(accountId: string, url: string): Promise<LinkFetch | undefined>;
  noteLinkFetch(fetch: LinkFetch): Promise<void>;
}

/** One spelling of a link's address: the fragment is never sent. */
export function linkAddress(given: string): string {
  const url = new URL(given);
  url.hash = "";
  return url.href;
}
