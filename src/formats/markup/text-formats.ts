/**
 * Formats that may contain a title; for `plain`, the title is the path. `html` and `mail` are sent as Markdown with the
 * readable text, `csv` and `tsv` with the column names in each row if the table has some, `subtitles`, `notebook` and `rtf`
 * as their text.
 */
export type TextFormat =
  | "markdown"
  | "asciidoc"
  | "org"
  | "rst"
  | "html"
  | "mail"
  | "csv"
  | "tsv"
  | "subtitles"
  | "notebook"
  | "rtf"
  | "plain";

/** Their extensions. */
export const TEXT_FORMATS: readonly (readonly [TextFormat, string])[] = [
  ["markdown", "md markdown mdown mkd mkdn mdx qmd rmd"],
  ["asciidoc", "adoc asciidoc"],
  ["html", "htm html xhtml"],
  ["mail", "eml"],
  ["csv", "csv"],
  ["tsv", "tsv tab"],
  ["subtitles", "vtt srt"],
  ["notebook", "ipynb"],
  ["rtf", "rtf"],
  ["org", "org"],
  ["rst", "rst"],
];

/** Office Open XML, OpenDocument and EPUB: zip archives of XML, distinguished by their contents. */
export const OFFICE_EXTENSIONS =
  "docx docm dotx dotm pptx pptm potx potm ppsx ppsm xlsx xlsm xltx xltm odt ott ods ots odp otp epub";

/** Formats whose text is extracted and sent as Markdown. */
export const CONVERTED_TEXT: ReadonlySet<TextFormat> = new Set([
  "html",
  "mail",
  "csv",
  "tsv",
  "subtitles",
  "notebook",
  "rtf",
]);
