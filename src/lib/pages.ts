import { KbsyncError } from "./failure.ts";

/** How a service pages a list. */
export interface PagesOptions<P> {
  /** Names the list in an error, such as `list of owners`. */
  readonly what: string;
  /** Reads the page after a cursor; undefined: the first one. */
  readonly read: (cursor: string | undefined) => Promise<P>;
  /** The cursor of the next page; undefined, null or empty: this page is the last one. */
  readonly next: (page: P) => string | null | undefined;
  /** Reads on after this cursor. Default: from the first page. */
  readonly start?: string | undefined;
  /** The hint of an error. */
  readonly hint?: string;
}

/** Yields the pages of a list. Throws `service_refused` for a list that repeats a cursor, which would never end. */
export async function* pagesOf<P>({
  what,
  read,
  next,
  start,
  hint = "It returned the same cursor twice.",
}: PagesOptions<P>): AsyncGenerator<P> {
  const seen = new Set([start]);
  for (let cursor: string | null | undefined = start; ; seen.add(cursor)) {
    const page = await read(cursor);
    yield page;
    cursor = next(page);
    if (cursor === undefined || cursor === null || cursor === "") return;
    if (seen.has(cursor)) {
      throw new KbsyncError(`the service's ${what} has no end`, {
        code: "service_refused",
        hint,
      });
    }
  }
}
