import type { LocatedText } from "../markup/located-text.ts";
import { notebookMarkdown } from "../markup/notebook.ts";
import { recordLines } from "../markup/record-lines.ts";
import { subtitleText } from "../markup/subtitles.ts";
import { decodeText } from "../text.ts";
import { nameText } from "../title.ts";
import type { Reading } from "./conversion.ts";
import { ConversionRefusal } from "./refusal.ts";

/** Longer tables and subtitles are databases. They are sent unconverted. */
const CHARS_MAX = 4_000_000;

/** Reads text of the structure that its name declares. Text with another structure is sent unconverted. */
export function readStructured(bytes: Buffer, kind: "csv" | "tsv" | "subtitles" | "notebook"): Reading {
  const decoded = decodeText(bytes);
  if (decoded.kind !== "text") throw new ConversionRefusal(decoded.reason);
  const { text } = decoded;
  if (kind === "notebook") {
    const markdown = notebookMarkdown(text);
    if (markdown !== undefined) return { text: markdown, title: nameText(markdown, "markdown").title };
  } else if (text.length <= CHARS_MAX) {
    const laidOut = kind === "subtitles" ? asLocated(subtitleText(text)) : recordLines(text, kind);
    if (laidOut !== undefined) return laidOut;
  }
  return { text, isExact: true };
}

function asLocated(text: string | undefined): LocatedText | undefined {
  return text === undefined ? undefined : { text };
}
