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
