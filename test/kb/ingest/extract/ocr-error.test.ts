import { expect, it } from "vitest";
import { ocrError } from "../../../../src/kb/ingest/extract/ocr-error.ts";
import type { OcrFailure } from "../../../../src/kb/ingest/extract/ocr-picture.ts";

const REQUEST = { path: "/uploads/a.png", pixelsMax: 40_000_000, pagesMax: 200 };
const LIMITS = { memoryMb: 512 };

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
    "recognising text detail",
    "split the document, make the picture smaller, or print it to a new PDF",
  ],
  [
    "busy",
    "extractor_busy",
    "recognising text detail: this machine is too busy",
    "try again when it has less to do",
  ],
  ["hang", "extraction_timeout", "recognising text detail, twice", AGAIN],
  ["fall", "extraction_crashed", "the process recognising text crashed, twice", AGAIN],
  ["unable", "extraction_failed", "recognising text is not possible at present", undefined],
])("the failure of a recognition says what a person can do: %s", (end, code, message, hint) => {
  const error = ocrError(end, REQUEST, LIMITS, "detail");
  const retryable = end === "busy" || end === "unable";
  expect(error).toMatchObject({ code, message, retryable, cause: { message: "detail" } });
  expect(error.hint).toBe(hint);
});
