import { notebookMarkdown } from "../../../formats/markup/notebook.ts";
import type { LocatedText } from "../../../formats/markup/located-text.ts";
import { recordLines } from "../../../formats/markup/record-lines.ts";
import { rtfText } from "../../../formats/markup/rtf.ts";
import { subtitleText } from "../../../formats/markup/subtitles.ts";
import { layOutJson } from "./json-text.ts";
import type { TextForm } from "./text-form.ts";

/**
 * Longer texts stay unchanged: laying out many short values takes up to a second for a million characters, and triples their
 * number.
 */
const STRUCTURED_CHARS_MAX = 2_000_000;

/** Longest text that `structuredText` lays out, in characters. Notebooks and RTF have no limit: most of them are pictures, which are dropped. */
export function structuredCharsMax(form: TextForm): number {
  return form === "notebook" || form === "rtf" ? Infinity : STRUCTURED_CHARS_MAX;
}

/**
 * Lays out data so that each chunk makes sense by itself: splits one-line JSON into lines, adds the column names to each row of a
 * declared table (CSV, TSV), and converts subtitles to paragraphs and notebooks to Markdown. Other texts stay unchanged.
 * Deterministic.
 */
export function structuredText(text: string, form: TextForm): LocatedText {
  if (text.length > structuredCharsMax(form)) return { text };
  switch (form) {
    case "csv":
    case "tsv":
      return recordLines(text, form) ?? { text };
    case "json":
    case "undeclared":
      return { text: layOutJson(text) ?? text };
    case "subtitles":
      return { text: subtitleText(text) ?? text };
    case "notebook":
      return { text: notebookMarkdown(text) ?? text };
    case "rtf":
      return { text: rtfText(text) ?? text };
    case "as-written":
    case "page":
    case "mail":
      return { text };
  }
}
