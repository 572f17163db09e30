import { STILL_READ } from "../../../wire/constants.ts";
import type { UnreadPage } from "./ocr.ts";

/** Most ranges of pages in a sentence. In a document with more, mostly every other page has no text. */
const RANGES_MAX = 10;

/**
 * Describes in sentences which pages were not read, and why; undefined if all were. `sought` is the number of pages to recognise,
 * as a number and in words.
 */
export function unreadWords(
  unread: readonly UnreadPage[],
  sought: { readonly count: number; readonly words: string },
): string | undefined {
  if (unread.length === 0) return undefined;
  const byReason = new Map<string, number[]>();
  for (const { page, why } of unread) {
    const reason = typeof why === "string" ? why : why.message;
    const pages = byReason.get(reason) ?? [];
    byReason.set(reason, pages);
    pages.push(page);
  }
  const sentences = [...byReason].map(([reason, pages]) => {
    const subject = `${pagesWords(pages)} ${pages.length === 1 ? "was" : "were"} not`;
    if (reason === "failures") return `${subject} tried after these.`;
    if (reason !== "bound") return `${subject} read: ${reason}.`;
    return `${subject} read: ${sought.words}, and text was recognised on the first ${sought.count - pages.length} of them, as many as one document may take.`;
  });
  return sentences.join(" ");
}

/** Describes which pages were left out because their recognised text is only scraps; undefined for none. */
export function scrapsWords(pages: readonly number[]): string | undefined {
  if (pages.length === 0) return undefined;
  const were = pages.length === 1 ? "was" : "were";
  return `${pagesWords(pages)} ${were} left out: what was recognised there is no text, perhaps a drawing, or a script of none of kb.ocr.languages.`;
}

/** Describes the pages that are still being read. `hasStored`: meanwhile they have the text of the version before. */
export function readingWords(pages: readonly number[], hasStored: boolean): string {
  const [have, are] = pages.length === 1 ? ["has", "is"] : ["have", "are"];
  const meanwhile = hasStored ? `${have} the text of the version before, and ` : "";
  return `${pagesWords(pages)} ${meanwhile}${are} ${STILL_READ}`;
}

function pagesWords(pages: readonly number[]): string {
  const runs: { first: number; last: number }[] = [];
  for (const page of pages) {
    const run = runs.at(-1);
    if (run?.last === page - 1) run.last = page;
    else runs.push({ first: page, last: page });
  }
  const ranges = runs
    .slice(0, RANGES_MAX)
    .map(({ first, last }) => (first === last ? `${first}` : `${first}–${last}`));
  const more = runs.length > RANGES_MAX ? " and later ones" : "";
  return `${pages.length === 1 ? "Page" : "Pages"} ${ranges.join(", ")}${more}`;
}
