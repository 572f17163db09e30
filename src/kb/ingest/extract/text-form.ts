/**
 * How a text is read. `as-written`: to the letter, whatever it looks like. `page`: HTML, of which the readable part counts.
 * `csv`, `tsv`: a table, if its first row names the columns. `json`: gets line breaks where it has none. `subtitles`: WebVTT
 * or SubRip, `notebook`: Jupyter, `rtf`: Rich Text Format, of which the text counts, `mail`: an e-mail, which is taken apart before; what
 * is none stays as written. `undeclared`: neither type nor name says anything, so that what begins as a page of HTML is one, and JSON gets its line breaks; no text
 * becomes a table for its tabs or commas.
 */
export type TextForm =
  | "as-written"
  | "page"
  | "csv"
  | "tsv"
  | "json"
  | "subtitles"
  | "notebook"
  | "rtf"
  | "mail"
  | "undeclared";

const BY_TYPE: ReadonlyMap<string, TextForm> = new Map<string, TextForm>([
  ["text/markdown", "as-written"],
  ["text/x-markdown", "as-written"],
  ["text/csv", "csv"],
  ["application/csv", "csv"],
  ["text/tab-separated-values", "tsv"],
  ["application/json", "json"],
  ["text/html", "page"],
  ["application/xhtml+xml", "page"],
  ["text/vtt", "subtitles"],
  ["application/x-subrip", "subtitles"],
  ["application/x-ipynb+json", "notebook"],
  ["application/rtf", "rtf"],
  ["text/rtf", "rtf"],
  ["message/rfc822", "mail"],
]);

const BY_EXTENSION: ReadonlyMap<string, TextForm> = new Map<string, TextForm>([
  ["csv", "csv"],
  ["tsv", "tsv"],
  ["tab", "tsv"],
  ["json", "json"],
  ["geojson", "json"],
  ["htm", "page"],
  ["html", "page"],
  ["xhtml", "page"],
  ["vtt", "subtitles"],
  ["srt", "subtitles"],
  ["ipynb", "notebook"],
  ["rtf", "rtf"],
  ["eml", "mail"],
]);

/** Names of text that is never anything else, whatever type is declared with it. */
const WRITTEN = /\.(?:txt|text|md|markdown|mdown|mkd|mdx|rst|adoc|org|log)$/i;

/**
 * The form that a text is declared to have: by the type that came with it, or else by its name. `text/plain` counts last, for
 * clients declare it of every text, and forms have it where nothing is declared.
 */
export function textFormOf(type: string | undefined, name: string): TextForm {
  if (WRITTEN.test(name)) return "as-written";
  const essence = (type ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
  const extension = /\.([a-z0-9]{1,10})$/i.exec(name)?.[1]?.toLowerCase() ?? "";
  const named = BY_EXTENSION.get(extension);
  // Notebooks are JSON, and are declared so by clients that know no more.
  const form = named === "notebook" ? named : (BY_TYPE.get(essence) ?? named);
  return form ?? (essence === "text/plain" ? "as-written" : "undeclared");
}
