import { describe, expect, it } from "vitest";
import {
  holdsScraps,
  holdsText,
  linesOf,
  ocrText,
  readingQuality,
  readingScore,
  type FoundBlock,
  type OcrLine,
} from "../../../../src/kb/ingest/extract/ocr-layout.ts";

/** A line of words with one confidence. */
function line(text: string, confidence: number): OcrLine {
  const box = { left: 0, top: 0, right: 0, bottom: 0 };
  const words = text.split(" ").map((word) => ({ text: word, confidence, box }));
  return { text, confidence, box, words, startsParagraph: false };
}

it.each([
  { name: "words read with confidence", lines: [line("The crane lifts", 0.9)], is: "text" },
  { name: "numbers", lines: [line("1204 339", 0.8)], is: "text" },
  {
    name: "a few uncertain words among many certain",
    lines: [line("The new crane", 0.9), line("xw", 0.2)],
    is: "text",
  },
  { name: "words read without confidence", lines: [line("GAGE EEC URULLRE", 0.3)], is: "scraps" },
  {
    name: "one certain word among scraps",
    lines: [line("Gargi", 0.9), line("wf Agel AR AER Bl", 0.3)],
    is: "scraps",
  },
  { name: "single letters, however certain", lines: [line("A b C d E f", 0.95)], is: "scraps" },
  { name: "signs without letters", lines: [line("| -- ° \\ _/ [] ()", 0.9)], is: "nothing" },
  { name: "a speck", lines: [line("NN", 0.3)], is: "nothing" },
  { name: "no lines", lines: [], is: "nothing" },
])("a recognition result of $name is $is", ({ lines, is }) => {
  expect({ text: holdsText(lines), scraps: holdsScraps(lines) }).toEqual({
    text: is === "text",
    scraps: is === "scraps",
  });
});

describe("the lines of a recognition result", () => {
  const bbox = (y0: number) => ({ x0: 1, y0, x1: 2, y1: y0 + 10 });
  const word = (text: string, confidence: number, y0 = 0) => ({ text, confidence, bbox: bbox(y0) });
  const found = (y0: number, ...words: readonly ReturnType<typeof word>[]) => ({ ...word("", 0, y0), words });
  const block = (...paragraphs: readonly (readonly ReturnType<typeof found>[])[]): FoundBlock => ({
    paragraphs: paragraphs.map((lines) => ({ lines })),
  });

  it("the lines of a recognition result have words without guesses, a box, and the mean confidence of their letters", () => {
    const words = [word(" The ", 90), word("crane", 70), word("~", 19), word("  ", 99), word("is", 20)];
    const [first, ...rest] = linesOf([block([found(0, ...words), found(12, word("x", 19))])]);
    expect(rest).toEqual([]);
    expect(first).toMatchObject({ text: "The crane is", box: { left: 1, top: 0, right: 2, bottom: 10 } });
    expect(first?.words.map(({ confidence }) => confidence)).toEqual([0.9, 0.7, 0.2]);
    expect(first?.confidence).toBeCloseTo((3 * 0.9 + 5 * 0.7 + 2 * 0.2) / 10, 10);
  });

  it("the lines of a recognition result start a paragraph where one was found, or behind a gap of 0.9 line heights", () => {
    const lines = linesOf([
      block([
        found(0, word("a", 9)),
        found(12, word("b", 90)),
        found(31, word("c", 90)),
        found(51, word("d", 90)),
      ]),
      block([found(61, word("e", 90))], [found(71, word("f", 90)), found(81, word("g", 90))]),
    ]);
    const starts = lines.map(({ text, startsParagraph }) => [text, startsParagraph]);
    expect(starts).toEqual([
      ["b", true],
      ["c", false],
      ["d", true],
      ["e", true],
      ["f", true],
      ["g", false],
    ]);
    expect(ocrText({ lines })).toBe("b\nc\n\nd\n\ne\n\nf\ng");
  });
});

it("the score of a reading counts the letters of certain words, and its quality is their share", () => {
  const lines = [line("two!! x", 0.6), line("four", 0.59), line("six6", 1)];
  expect(readingScore(lines)).toBeCloseTo(3 * 0.6 + 4, 10);
  expect(readingQuality(lines)).toBeCloseTo((3 * 0.6 + 4) / 12, 10);
  expect(readingQuality([line("--", 0.9)])).toBe(0);
});

it.each([
  ["two certain letters", [line("ab", 1)], true, false],
  ["two less certain letters", [line("ab", 0.99)], false, false],
  ["half of the letters certain", [line("abcde", 1), line("abcde", 0.3)], true, false],
  ["less than half certain", [line("abcde", 1), line("abcdef", 0.3)], false, true],
  ["five uncertain letters", [line("abcde", 0.3)], false, true],
  ["four uncertain letters", [line("abcd", 0.3)], false, false],
])("a result with %s", (_name, lines, isText, isScraps) => {
  expect([holdsText(lines), holdsScraps(lines)]).toEqual([isText, isScraps]);
});
