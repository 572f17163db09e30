import { expect, it } from "vitest";
import { citedPath } from "../../../src/cli/output/cited-path.ts";

const lines = { first: 12, last: 14 };
it.each([
  ["notes/a.md", { lines }, "notes/a.md:12"],
  ["src/a.ts", { lines }, "src/a.ts:12"],
  // Lines of the extracted text are no lines of the file.
  ["a.docx", { lines }, "a.docx"],
  ["a.html", { lines }, "a.html"],
  ["a.pdf", { lines, pages: { first: 3, last: 3 } }, "a.pdf, page 3"],
  ["a.pdf", { lines, pages: { first: 3, last: 5 } }, "a.pdf, pages 3–5"],
  ["a.md", {}, "a.md"],
])("names %s at %j as %s", (path, position, cited) => {
  expect(citedPath(path, position)).toBe(cited);
});
