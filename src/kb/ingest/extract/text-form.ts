/**
 * How a text is read:
 *
 * - `as-written`: verbatim, whatever it looks like
 * - `page`: the readable part of an HTML page
 * - `csv`, `tsv`: a table, if its first row names the columns
 * - `json`: with line breaks added if it has none
 * - `subtitles`: WebVTT or SubRip
 * - `notebook`: Jupyter
 * - `rtf`: the text of Rich Text Format
 * - `mail`: an e-mail, which is parsed before
 * - `undeclared`: neither type nor name says more. A text that starts like an HTML page is read as one, and JSON gets line breaks,
 *   but tabs or commas make no table.
 *
 * A text that does not have its declared form stays as written.
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

/** Names of texts that are always read as written, whatever their declared type. */
const PLAIN_TEXT_NAME = /\.(?:txt|text|md|markdown|mdown|mkd|mdx|rst|adoc|org|log)$/i;

/**
 * Returns the form of a text by its declared type, else by its name. `text/plain` counts last, because clients declare it for every
 * text, and forms contain it if nothing is declared.
 */
export function textFormOf(type: string | undefined, name: string): TextForm {
  if (PLAIN_TEXT_NAME.test(name)) return "as-written";
  const essence = (type ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
  const extension = /\.([a-z0-9]{1,10})$/i.exec(name)?.[1]?.toLowerCase() ?? "";
  const byName = BY_EXTENSION.get(extension);
  // Notebooks are JSON, and clients that do not know them declare them as JSON.
  const form = byName === "notebook" ? byName : (BY_TYPE.get(essence) ?? byName);
  return form ?? (essence === "text/plain" ? "as-written" : "undeclared");
}
