import { array, assert, property, record, string } from "fast-check";
import { describe, expect, it } from "vitest";
import { CONTEXT_CHARS_MAX, embeddingText } from "../../../src/kb/embed/embedding-text.ts";

const CASES: readonly [name: string, title: string, headings: string[], text: string, expected: string][] = [
  [
    "title and headings stand before",
    "Manual",
    ["Setup", "Linux"],
    "Run it.",
    "Manual\nSetup\nLinux\nRun it.",
  ],
  ["nothing above", "", [], "Run it.", "Run it."],
  ["a title that the text begins with", "Manual", [], "Manual\n\nRun it.", "Manual\n\nRun it."],
  ["a heading that the text begins with", "", ["Setup"], "## Setup\n\nRun it.", "## Setup\n\nRun it."],
  ["a heading that repeats the title", "Manual", ["Manual", "Setup"], "Run it.", "Manual\nSetup\nRun it."],
  ["white space", " The\n  manual ", ["\t"], "Run it.", "The manual\nRun it."],
  [
    "too many headings: the innermost stay",
    "Manual",
    ["a".repeat(150), "b".repeat(90), "c".repeat(90)],
    "Run it.",
    `Manual\n${"b".repeat(90)}\n${"c".repeat(90)}\nRun it.`,
  ],
  ["a long title gives way to headings", "t".repeat(300), ["Setup"], "x", `${"t".repeat(195)}\nSetup\nx`],
  ["a title alone has all the room", "t".repeat(300), [], "x", `${"t".repeat(200)}\nx`],
];

describe("embeddingText", () => {
  it.each(CASES)("%s", (_name, title, headings, text, expected) => {
    expect(embeddingText({ title, headings, text })).toBe(expected);
  });

  it("ends with the whole text, behind a bounded context", () => {
    assert(
      property(
        record({
          title: string({ maxLength: 400 }),
          headings: array(string({ maxLength: 300 })),
          text: string(),
        }),
        (context) => {
          const embedded = embeddingText(context);
          expect(embedded.endsWith(context.text)).toBe(true);
          const lines = 1 + context.headings.length;
          expect(embedded.length - context.text.length).toBeLessThanOrEqual(CONTEXT_CHARS_MAX + lines);
        },
      ),
    );
  });
});
