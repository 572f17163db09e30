import { expect, it } from "vitest";
import {
  boxInPicture,
  holdsScraps,
  holdsText,
  type OcrLine,
} from "../../../../src/kb/ingest/extract/ocr-layout.ts";

// A picture of 100 × 60 pixels, read at twice its size; a box at 10 to 30 across and 5 to 15 down.
it.each([
  [0, { widthPx: 200, heightPx: 120 }, { left: 20, top: 10, right: 60, bottom: 30 }],
  [90, { widthPx: 120, heightPx: 200 }, { left: 90, top: 20, right: 110, bottom: 60 }],
  [180, { widthPx: 200, heightPx: 120 }, { left: 140, top: 90, right: 180, bottom: 110 }],
  [270, { widthPx: 120, heightPx: 200 }, { left: 10, top: 140, right: 30, bottom: 180 }],
] as const)("a box read at a turn of %d degrees is one of the picture itself", (turned, size, box) => {
  const page = { ...size, turned, pictureWidthPx: 100, pictureHeightPx: 60 };
  expect(boxInPicture(page, box)).toEqual({ left: 10, top: 5, right: 30, bottom: 15 });
});

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
