import { expect, it } from "vitest";
import { textFormOf } from "../../../../src/kb/ingest/extract/text-form.ts";

it.each([
  ["text/csv", "notes.txt", "as-written"],
  ["text/html", "README.md", "as-written"],
  ["text/plain", "notes", "as-written"],
  ["text/plain; charset=utf-8", "notes", "as-written"],
  ["text/csv; header=present", "export", "csv"],
  ["text/tab-separated-values", "export.csv", "tsv"],
  ["text/plain", "people.csv", "csv"],
  ["application/octet-stream", "people.TSV", "tsv"],
  [undefined, "page.html", "page"],
  ["application/json", "x", "json"],
  ["application/json", "x.ipynb", "notebook"],
  ["text/plain", "film.srt", "subtitles"],
  ["text/rtf", "x", "rtf"],
  ["application/octet-stream", "x.rtf", "rtf"],
  ["message/rfc822", "x", "mail"],
  ["application/octet-stream", "x.eml", "mail"],
  ["text/vtt", "x", "subtitles"],
  ["text/vtt", "x.txt", "as-written"],
  ["application/octet-stream", "x.py", "undeclared"],
  [undefined, "x", "undeclared"],
] as const)("text declared as %s in a file named %s is read as %s", (type, name, form) => {
  expect(textFormOf(type, name)).toBe(form);
});
