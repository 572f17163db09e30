import { bodyStart, sentencesOf } from "../../kb/chat/sentences.ts";
import { wrapped } from "../terminal/wrap.ts";
import type { QueryMatches } from "./matches.ts";

/** Bounds of a passage's lines. */
export interface LineRoom {
  readonly cells: number;
  readonly lines: number;
}

/**
 * Returns the part of a chunk with the most words of the query, as wrapped lines that start with a sentence. Omits front
 * matter, and headings that are in `headings`, from the beginning. Pure.
 */
export function bestLines(
  content: string,
  headings: readonly string[],
  matches: QueryMatches,
  room: LineRoom,
): string[] {
  const text = withoutHeadings(content, new Set(headings));
  const from = bestStart(text, matches, room.cells * room.lines);
  const lines = wrapped(reflowed(text.slice(from)), room.cells).filter((line) => line !== "");
  if (lines.length <= room.lines) return lines;
  const shown = lines.slice(0, room.lines);
  const last = shown.pop() ?? "";
  const [ended = ""] = wrapped(last, Math.max(1, room.cells - 2));
  return [...shown, `${ended} …`];
}

/**
 * Joins the lines of a wrapped paragraph. A line that begins with white space or a mark, as in lists, tables and code, stays
 * separate. Pure.
 */
export function reflowed(text: string): string {
  return text.trimEnd().replaceAll(/(?<=\S)\n(?![\s#>|*+-]|\d{1,3}[.)]\s|```)/g, " ");
}

function withoutHeadings(content: string, headings: ReadonlySet<string>): string {
  const text = content.trim();
  const lines = (text.slice(bodyStart(text)).trim() || text).split("\n");
  const at = lines.findIndex((line) => {
    const words = line.replace(/^#+\s+/, "").trim();
    return words !== "" && !headings.has(words);
  });
  return lines.slice(Math.max(0, at)).join("\n");
}

/**
 * Weight of the first sentence's words relative to those of the passage: among equal passages, the one that begins with them
 * wins.
 */
const FIRST_WEIGHT = 0.1;

function bestStart(text: string, matches: QueryMatches, chars: number): number {
  // All of it is shown.
  if (text.length <= chars) return 0;
  let best = { start: 0, weight: 0 };
  for (const sentence of sentencesOf(text)) {
    const { start } = sentence;
    const weight =
      matches.weightOf(text.slice(start, start + chars)) + FIRST_WEIGHT * matches.weightOf(sentence.text);
    if (weight > best.weight) best = { start, weight };
  }
  return best.start;
}
