import { expect, it } from "vitest";
import { boxInPicture } from "../../../../src/kb/ingest/extract/ocr-layout.ts";

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
