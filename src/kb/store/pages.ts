/**
 * Offset in a content at which the text of each page begins, in the order of the pages; null for a page without text. Text
 * before the first offset belongs to no page. The blank line after a page belongs to it.
 */
export type PageStarts = readonly (number | null)[];

/** A page with text. */
export interface Page {
  /** From 1. */
  readonly number: number;
  /** Offset in the content at which its text begins. */
  readonly start: number;
}

/** Returns the pages that have text, in order. */
export function pagesOf(starts: PageStarts): readonly Page[] {
  return starts.flatMap((start, at) => (start === null ? [] : { number: at + 1, start }));
}

/** Returns those of `pages` that hold text from `start` up to, not including, `end`. */
export function pagesWithin(pages: readonly Page[], start: number, end: number): readonly Page[] {
  return pages.slice(Math.max(0, firstFrom(pages, start + 1) - 1), firstFrom(pages, end));
}

/** Returns the index of the first page that starts at `offset` or later. */
function firstFrom(pages: readonly Page[], offset: number): number {
  let low = 0;
  let high = pages.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((pages[middle]?.start ?? Infinity) < offset) low = middle + 1;
    else high = middle;
  }
  return low;
}
