import { notebookMarkdown } from "../../../lib/markup/notebook.ts";
import { recordLines } from "../../../lib/markup/record-lines.ts";
import { rtfText } from "../../../lib/markup/rtf.ts";
import { subtitleText } from "../../../lib/markup/subtitles.ts";
import { layOutJson } from "./json-text.ts";
import type { TextForm } from "./text-form.ts";

/**
 * Longer texts stay as they are: laying one out takes up to a second a million characters where they are many short
 * values, and makes three times as many of them.
 */
const STRUCTURED_CHARS_MAX = 2_000_000;

/** Longest text that `structuredText` looks at, in characters. Most of a notebook or an RTF are pictures, which are left out at once. */
export function structuredCharsMax(form: TextForm): number {
  return form === "notebook" || form === "rtf" ? Infinity : STRUCTURED_CHARS_MAX;
}

/**
 * Gives data a form in which a part of it makes sense by itself, as chunks are: JSON in one line gets lines, each row of a
 * table that is declared as one (CSV, TSV) names its columns, subtitles become paragraphs and notebooks Markdown. Every other text stays as it is. Deterministic.
 */
export function structuredText(text: string, form: TextForm): string {
  if (text.length > structuredCharsMax(form)) return text;
  switch (form) {
    case "csv":
    case "tsv":
      return recordLines(text, form) ?? text;
    case "json":
    case "undeclared":
      return layOutJson(text) ?? text;
    case "subtitles":
      return subtitleText(text) ?? text;
    case "notebook":
      return notebookMarkdown(text) ?? text;
    case "rtf":
      return rtfText(text) ?? text;
    case "as-written":
    case "page":
    case "mail":
      return text;
  }
}
