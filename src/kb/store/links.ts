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
  /** The latest fetch of that address for the account. The oldest of very many may be forgotten. */
  linkFetch(accountId: string, url: string): Promise<LinkFetch | undefined>;
  noteLinkFetch(fetch: LinkFetch): Promise<void>;
}
