import { array, assert, property, record, string } from "fast-check";
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  CONTEXT_CHARS_MAX,
  embeddingText,
  EMBEDDING_TEXT_VERSION,
  embedderFingerprint,
  modelFingerprint,
} from "../../../src/kb/embed/embedding-text.ts";

const CASES: readonly [name: string, title: string, headings: string[], text: string, expected: string][] = [
  [
    "title and headings precede the text",
    "Manual",
    ["Setup", "Linux"],
    "Run it.",
    "Manual\nSetup\nLinux\nRun it.",
  ],
  ["no title and no headings", "", [], "Run it.", "Run it."],
  ["a title that the text starts with", "Manual", [], "Manual\n\nRun it.", "Manual\n\nRun it."],
  ["a heading that the text starts with", "", ["Setup"], "## Setup\n\nRun it.", "## Setup\n\nRun it."],
  ["a heading that repeats the title", "Manual", ["Manual", "Setup"], "Run it.", "Manual\nSetup\nRun it."],
  ["white space", " The\n  manual ", ["\t"], "Run it.", "The manual\nRun it."],
  [
    "too many headings: the innermost remain",
    "Manual",
    ["a".repeat(150), "b".repeat(90), "c".repeat(90)],
    "Run it.",
    `Manual\n${"b".repeat(90)}\n${"c".repeat(90)}\nRun it.`,
  ],
  ["a long title gives way to headings", "t".repeat(300), ["Setup"], "x", `${"t".repeat(195)}\nSetup\nx`],
  ["a title alone takes the whole bound", "t".repeat(300), [], "x", `${"t".repeat(200)}\nx`],
];

describe("embeddingText", () => {
  it.each(CASES)("embeddingText builds the text to embed: %s", (_name, title, headings, text, expected) => {
    expect(embeddingText({ title, headings, text })).toBe(expected);
  });

  it("embeddingText ends with the whole text, after a bounded context", () => {
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

describe("EMBEDDING_TEXT_VERSION", () => {
  it("the version of embedded texts increases when their form changes", () => {
    const texts = [
      { title: "Tides", headings: ["Moon", "Pull"], text: "The sea follows." },
      { title: "  A\n title ", headings: ["A title", "Deep ".repeat(60), "Inner"], text: "# Inner\nWords." },
      { title: "T".repeat(300), headings: ["H".repeat(90), "I".repeat(90)], text: "Body." },
      { title: "", headings: [], text: "Alone." },
    ].map(embeddingText);
    const sha256 = createHash("sha256").update(JSON.stringify(texts)).digest("hex").slice(0, 16);
    // If this fails, the texts differ from those of stored vectors: increase EMBEDDING_TEXT_VERSION.
    expect([EMBEDDING_TEXT_VERSION, sha256]).toEqual([1, "b2709135678ab671"]);
  });

  it.each([
    ["version 1 adds nothing", "model/384", 1, "model/384"],
    ["a later version adds a suffix", "model/384", 2, "model/384/text-2"],
  ])("%s to the fingerprint of an embedder", (_name, model, version, fingerprint) => {
    expect(embedderFingerprint(model, version)).toBe(fingerprint);
    expect(modelFingerprint(fingerprint)).toBe(model);
  });
});
