import type { PageStarts } from "../../store/pages.ts";

/** Separator of pages: the boundary that every chunker prefers. */
const PAGE_BREAK = "\n\n";

/** Joins the texts of all pages by a blank line, without those that are empty. */
export function joinPages(texts: readonly string[]): { readonly text: string; readonly pages: PageStarts } {
  let end = 0;
  const pages = texts.map((text) => {
    if (text === "") return null;
    const start = end === 0 ? 0 : end + PAGE_BREAK.length;
    end = start + text.length;
    return start;
  });
  return { text: texts.filter((text) => text !== "").join(PAGE_BREAK), pages };
}
