import { expect, it } from "vitest";
import { ocrError } from "../../../../src/kb/ingest/extract/ocr-error.ts";
import type { OcrFailure } from "../../../../src/kb/ingest/extract/ocr-picture.ts";

const REQUEST = { path: "/uploads/a.png", pixelsMax: 40_000_000, pagesMax: 200 };
const LIMITS = { memoryMb: 512, timeoutMs: 60_000 };

it.each<[code: OcrFailure, detail: string, message: string]>([
  [
    "image_too_large",
    "10000 × 10000",
    "the image has 10000 × 10000 pixels, more than the limit of 40 million",
  ],
  [
    "too_many_pages",
    "300 pages",
    "the file has 300 pages whose text has to be recognised, more than the limit of 200",
  ],
])("the message of a refusal names what was found and the limit: %s", (code, detail, message) => {
  expect(ocrError(code, REQUEST, LIMITS, detail)).toMatchObject({ code, message, subject: REQUEST.path });
});

const AGAIN = "open it and save it again";
it.each<[Parameters<typeof ocrError>[0], string, string, string | undefined]>([
  ["damaged_image", "damaged_image", "the image is damaged and cannot be read", AGAIN],
  [
    "damaged_pdf",
    "damaged_pdf",
    "the pages of the PDF cannot be drawn, so their text cannot be recognised",
    "open it and print it to a new PDF",
  ],
  [
    "memory",
    "extraction_memory",
    "recognising text takes more memory than the limit of 512 MB",
    "make the picture smaller",
  ],
  [
    "time",
    "extraction_timeout",
    "recognising text takes longer than the limit of 60 s",
    "split the document, make the picture smaller, or print it to a new PDF",
  ],
  ["fall", "extraction_crashed", "the process recognising text crashed, twice", AGAIN],
  ["unable", "extraction_failed", "recognising text is not possible at present", undefined],
])("the failure of a recognition says what a person can do: %s", (end, code, message, hint) => {
  const error = ocrError(end, REQUEST, LIMITS, "detail");
  expect(error).toMatchObject({ code, message, retryable: end === "unable", cause: { message: "detail" } });
  expect(error.hint).toBe(hint);
});

it("the time limit of a page of a PDF follows from the size of the PDF", () => {
  const error = ocrError("time", { ...REQUEST, bytes: 2 * 1024 * 1024 }, LIMITS, "");
  expect(error.message).toBe(
    "recognising text takes longer than a page of a PDF of its size may (30 s of processor time, 60 s in all)",
  );
});
