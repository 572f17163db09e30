import { assert, property, string } from "fast-check";
import { describe, expect, it } from "vitest";
import { SENTENCES_MAX, sentencesOf } from "../../../src/kb/ingest/sentence-vectors.ts";
import { anyCharacter } from "../../any-character.ts";

const CASES: readonly [name: string, text: string, expected: string[]][] = [
  [
    "prose",
    "The river rose in the night. Nobody saw it come.",
    ["The river rose in the night.", "Nobody saw it come."],
  ],
  ["a line broken for width", "The river rose\nin the night.", ["The river rose in the night."]],
  [
    "a paragraph without a stop",
    "The river rose at night\n\nNobody saw it come",
    ["The river rose at night", "Nobody saw it come"],
  ],
  [
    "a heading begins its first sentence",
    "# Floods\n\nThe river rose in the night.",
    ["# Floods The river rose in the night."],
  ],
  [
    "items of a list",
    "What to take along:\n- a lamp with fresh batteries\n- bread for three whole days\n",
    ["What to take along: - a lamp with fresh batteries", "- bread for three whole days"],
  ],
  [
    "short pieces join the next",
    "No. Never. The river rose in the night.",
    ["No. Never. The river rose in the night."],
  ],
  ["a short end stands alone", "The river rose in the night. No.", ["The river rose in the night.", "No."]],
  ["nothing to say", " \n --- \n *** ", []],
  ["empty", "", []],
];

describe("sentencesOf", () => {
  it.each(CASES)("sentencesOf splits a chunk into sentences: %s", (_name, text, expected) => {
    expect(sentencesOf(text)).toEqual(expected);
  });

  it("sentencesOf groups neighbours beyond its bound", () => {
    const text = Array.from({ length: 100 }, (_, at) => `This is the sentence number ${at}.`).join(" ");
    const sentences = sentencesOf(text);
    expect(sentences.length).toBeLessThanOrEqual(SENTENCES_MAX);
    expect(sentences.join(" ")).toBe(text);
  });

  it("sentencesOf keeps every letter and digit within its bound", () => {
    const letters = (text: string): string => text.replaceAll(/[^\p{L}\p{N}]/gu, "");
    assert(
      property(string({ unit: anyCharacter, maxLength: 600 }), (given) => {
        const text = given.toWellFormed();
        const sentences = sentencesOf(text);
        expect(letters(sentences.join(" "))).toBe(letters(text));
        expect(sentences.length).toBeLessThanOrEqual(SENTENCES_MAX);
      }),
    );
  });
});
