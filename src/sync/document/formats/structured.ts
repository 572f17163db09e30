import { notebookMarkdown } from "../../../lib/markup/notebook.ts";
import { recordLines } from "../../../lib/markup/record-lines.ts";
import { subtitleText } from "../../../lib/markup/subtitles.ts";
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
  const markdown = markdownOf(text, kind);
  if (markdown === undefined) return { markdown: text, isExact: true };
  return { markdown, ...(kind === "notebook" && { title: nameText(markdown, "markdown").title }) };
}

function markdownOf(text: string, kind: "csv" | "tsv" | "subtitles" | "notebook"): string | undefined {
  if (kind === "notebook") return notebookMarkdown(text);
  if (text.length > CHARS_MAX) return undefined;
  return kind === "subtitles" ? subtitleText(text) : recordLines(text, kind);
}
