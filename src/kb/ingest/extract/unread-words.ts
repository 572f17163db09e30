import type { UnreadPage } from "./ocr.ts";

/** Runs of pages that a sentence names; a document of more has mostly every other page without text. */
const RUNS_NAMED = 10;

/**
 * Says which pages were not read, and why, in sentences for a person; undefined where all were. `sought` is how many pages
 * had to be recognised, in words, and their number.
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
    const named = `${pagesWords(pages)} ${pages.length === 1 ? "was" : "were"} not`;
    if (reason === "failures") return `${named} tried after these.`;
    if (reason !== "bound") return `${named} read: ${reason}.`;
    return `${named} read: ${sought.words}, and text was recognised on the first ${sought.count - pages.length} of them, as many as one document may take (kb.ocr.pagesMax, or its time).`;
  });
  return sentences.join(" ");
}

/** Says which pages were left out because what was recognised there is no text; undefined for none. */
export function scrapsWords(pages: readonly number[]): string | undefined {
  if (pages.length === 0) return undefined;
  const were = pages.length === 1 ? "was" : "were";
  return `${pagesWords(pages)} ${were} left out: what was recognised there is no text, perhaps a drawing, or a script of none of kb.ocr.languages.`;
}

function pagesWords(pages: readonly number[]): string {
  const runs: { first: number; last: number }[] = [];
  for (const page of pages) {
    const run = runs.at(-1);
    if (run?.last === page - 1) run.last = page;
    else runs.push({ first: page, last: page });
  }
  const named = runs
    .slice(0, RUNS_NAMED)
    .map(({ first, last }) => (first === last ? `${first}` : `${first}–${last}`));
  const more = runs.length > RUNS_NAMED ? " and later ones" : "";
  return `${pages.length === 1 ? "Page" : "Pages"} ${named.join(", ")}${more}`;
}
