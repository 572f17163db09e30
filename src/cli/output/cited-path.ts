import { kindOfName } from "../../formats/kinds.ts";
import { locationWords } from "../../wire/location.ts";
import type { SearchResult } from "../../wire/search.ts";

/** Formats whose files are sent unchanged: lines of their text are lines of the file. */
const AS_WRITTEN: ReadonlySet<string> = new Set(["markdown", "asciidoc", "org", "rst", "plain"]);

/** Returns the path of a file with the cited locations, or else with the first line; without either if both are unknown. */
export function citedPath(
  path: string,
  { lines, locations = [] }: Pick<SearchResult["payload"], "lines" | "locations">,
): string {
  if (locations.length > 0) return `${path} (${locationWords(locations)})`;
  const named = kindOfName(path);
  const isAsWritten = named.kind === "content" && AS_WRITTEN.has(named.format);
  return lines !== undefined && isAsWritten ? `${path}:${lines.first}` : path;
}
