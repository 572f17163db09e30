import { expect, it } from "vitest";
import { citedPath } from "../../../src/cli/output/cited-path.ts";

const lines = { first: 12, last: 14 };
it.each([
  ["notes/a.md", { lines }, "notes/a.md:12"],
  ["src/a.ts", { lines }, "src/a.ts:12"],
  // Lines of the extracted text are no lines of the file.
  ["a.docx", { lines }, "a.docx"],
  ["a.html", { lines }, "a.html"],
  ["a.pdf", { lines, locations: [{ pages: { first: 3, last: 3 } }] }, "a.pdf (page 3)"],
  ["a.pdf", { lines, locations: [{ pages: { first: 3, last: 5 } }] }, "a.pdf (pages 3–5)"],
  [
    "a.xlsx",
    { lines, locations: [{ sheet: "Q1", rows: { first: 12, last: 30 } }] },
    'a.xlsx (sheet "Q1", rows 12–30)',
  ],
  ["a.csv", { lines, locations: [{ rows: { first: 7, last: 7 } }] }, "a.csv (row 7)"],
  ["a.pptx", { lines, locations: [{ slides: { first: 2, last: 4 } }] }, "a.pptx (slides 2–4)"],
  [
    "a.eml",
    { locations: [{ part: "message" }, { part: "b.pdf", pages: { first: 1, last: 2 } }] },
    "a.eml (message; b.pdf, pages 1–2)",
  ],
  [
    "a.ods",
    { locations: [{ sheet: "A" }, { sheet: "B" }, { sheet: "C" }, { sheet: "D" }] },
    'a.ods (sheet "A"; sheet "B"; sheet "C"; …)',
  ],
  ["a.md", {}, "a.md"],
])("names %s at %j as %s", (path, position, cited) => {
  expect(citedPath(path, position)).toBe(cited);
});
