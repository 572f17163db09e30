import { kindOfName } from "../../sync/document/kinds.ts";
import type { SearchResult } from "../../wire/search.ts";

/** Formats whose files are sent as they are: lines of their text are lines of the file. */
const AS_WRITTEN: ReadonlySet<string> = new Set(["markdown", "asciidoc", "org", "rst", "plain"]);

/** Returns the path of a file with the first line that is cited, or the pages; the path alone if neither is known. */
export function citedPath(
  path: string,
  { lines, pages }: Pick<SearchResult["payload"], "lines" | "pages">,
): string {
  if (pages !== undefined) {
    const { first, last } = pages;
    return `${path}, ${first === last ? `page ${first}` : `pages ${first}–${last}`}`;
  }
  const named = kindOfName(path);
  const isAsWritten = named.kind === "content" && AS_WRITTEN.has(named.format);
  return lines !== undefined && isAsWritten ? `${path}:${lines.first}` : path;
}
