import { basename, join } from "node:path";
import type { SearchResult } from "../../wire/search.ts";
import { citedPath } from "../output/cited-path.ts";
import type { Style } from "../terminal/style.ts";
import { wrapped } from "../terminal/wrap.ts";
import { bestLines } from "./best-lines.ts";
import type { QueryMatches } from "./matches.ts";

/** A result with the file that contains it. */
export interface Found {
  readonly score: number;
  /** Below the source's folder; null for a resource that is not of this ledger. */
  readonly path: string | null;
  readonly source: string | null;
  readonly docId: string;
  readonly title: string | null;
  /** Above `content`, outermost first. */
  readonly headings: readonly string[];
  readonly chunkId: string;
  readonly version: number;
  readonly content: string;
  /** The hits within `content`, if it is more than one chunk. */
  readonly hits: SearchResult["payload"]["hits"];
  /** The description of the file's folder, if known. */
  readonly folderDescription: string | undefined;
  /** The position of `content` in the text of the document, according to the service. */
  readonly position: Pick<
    SearchResult["payload"],
    "start" | "end" | "lines" | "pages" | "locations" | "sha256" | "fileUrl"
  >;
}

/** Lines of a passage: enough to judge it, and five results fit on a screen. */
const PASSAGE_LINES = 4;
const INDENT = "    ";

/** The results for a person, numbered from 1: path, title with headings, and the best passage or all of it. */
export function resultsText(
  found: readonly Found[],
  matches: QueryMatches,
  style: Style,
  isFull: boolean,
): string {
  return found.map((result, at) => oneResult(result, at + 1, matches, style, isFull)).join("\n");
}

function oneResult(
  result: Found,
  number: number,
  matches: QueryMatches,
  style: Style,
  isFull: boolean,
): string {
  const { score, content } = result;
  const cells = style.columns - INDENT.length - 1;
  const trail = trailOf(result);
  const lines = isFull
    ? content.trim().split("\n")
    : bestLines(content, trail, matches, { cells, lines: PASSAGE_LINES });
  const highlighted = lines.map((line) =>
    matches
      .runsOf(line)
      .map(({ text, isMatch }) => (isMatch ? style.match(text) : style.plain(text)))
      .join(""),
  );
  const below = [
    ...nonEmpty(wrapped(trail.join(style.symbols ? " › " : " > "), cells)).map(style.strong),
    ...nonEmpty(highlighted),
  ].map((line) => `${INDENT}${line}\n`);
  return `${String(number).padStart(2)}  ${scoreBar(score, style)}  ${locationText(result, style)}\n${below.join("")}`;
}

function nonEmpty(lines: readonly string[]): readonly string[] {
  return lines.filter((line) => line !== "");
}

/** Title and headings without repeats: a title is often the first heading, or the name of the file, which is shown already. */
function trailOf({ title, headings, path }: Found): readonly string[] {
  const names = title === null || title === basename(path ?? "") ? headings : [title, ...headings];
  return [...new Set(names)];
}

function locationText({ path, source, docId, position }: Found, style: Style): string {
  if (path === null || source === null) return style.plain(`resource ${docId}`);
  return style.fileLink(citedPath(path, position), join(source, path));
}

const BAR_CELLS = 5;

function scoreBar(score: number, { symbols, faint }: Style): string {
  const filled = Math.round(score * BAR_CELLS);
  const [full, empty] = symbols ? ["▰", "▱"] : ["#", "-"];
  return `${full.repeat(filled)}${faint(empty.repeat(BAR_CELLS - filled))} ${score.toFixed(2)}`;
}
