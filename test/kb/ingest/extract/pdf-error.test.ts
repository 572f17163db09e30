import { describe, expect, it } from "vitest";
import { pdfCpuMs, pdfPagesMax } from "../../../../src/kb/ingest/extract/pdf-budget.ts";
import { pdfError } from "../../../../src/kb/ingest/extract/pdf-error.ts";

const MB = 1024 * 1024;
const LIMITS = { memoryMb: 512 };
const REQUEST = { path: "/uploads/a.pdf", bytes: 2 * MB, charsMax: 1000 };
const PRINT_AGAIN = "open it and print it to a new PDF";
const SPLIT = "split the document, or print it to a new PDF";

it.each([
  [0, 10_000, 1000],
  [99, 10_000, 1000],
  [100, 10_000, 1001],
  [MB / 2, 15_000, 1000 + 5242],
  [2 * MB, 30_000, 1000 + 20_971],
])(
  "a PDF of %i bytes may take %i ms of processor time for its text, and have %i pages",
  (bytes, ms, pages) => {
    expect(Math.round(pdfCpuMs(bytes) / 1000) * 1000).toBe(ms);
    expect(pdfPagesMax(bytes)).toBe(pages);
  },
);

describe("the failure of a PDF", () => {
  it.each([
    [
      "encrypted_pdf",
      "encrypted_pdf",
      "the PDF is protected by a password",
      "save a copy without the password and send that",
    ],
    [
      "damaged_pdf",
      "damaged_pdf",
      "the PDF is damaged and cannot be read",
      "open it and save or print it to a new PDF",
    ],
    [
      "too_many_pages",
      "too_many_pages",
      "the PDF claims to have 9 pages, more than a file of its size can hold",
      PRINT_AGAIN,
    ],
    [
      "text_too_large",
      "text_too_large",
      "the PDF holds more text than the limit of 1000 characters",
      "split the document",
    ],
    ["memory", "extraction_memory", "reading the PDF takes more memory than the limit of 512 MB", SPLIT],
    [
      "time",
      "extraction_timeout",
      "reading the PDF used 30 s of processor time without finishing",
      SPLIT,
      "used 30 s of processor time without finishing",
    ],
    [
      "busy",
      "extractor_busy",
      "reading the PDF got 6 s of processor time in 600 s: this machine is too busy",
      "try again when it has less to do",
      "got 6 s of processor time in 600 s",
    ],
    [
      "hang",
      "extraction_timeout",
      "reading the PDF used no processor for 300 s, and waited for none, twice",
      PRINT_AGAIN,
      "used no processor for 300 s, and waited for none",
    ],
    ["fall", "extraction_crashed", "the process reading the PDF crashed, twice", PRINT_AGAIN],
    ["unable", "extraction_failed", "reading the PDF is not possible at present", undefined],
  ] as const)("says what a person can do, without words of a library: %s", (...facts) => {
    const [end, code, message, hint, detail = "9 pages"] = facts;
    const error = pdfError(end, REQUEST, LIMITS, detail);
    expect(error).toMatchObject({
      code,
      message,
      subject: REQUEST.path,
      retryable: end === "busy" || end === "unable",
      cause: { message: detail },
    });
    expect(error.hint).toBe(hint);
  });
});
