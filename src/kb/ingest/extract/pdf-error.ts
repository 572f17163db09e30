import type { CappedEnd, CappedLimits } from "../../../lib/capped/process.ts";
import { KbsyncError } from "../../../lib/failure.ts";
import { pdfCpuMs } from "./pdf-budget.ts";
import type { PdfFailure, PdfRequest } from "./pdf-child.ts";

/** The error a caller of `extractText` sees. `detail`, PDF.js's own words as a rule, goes into its cause; they, file names and paths stay out of the message. */
export function pdfError(
  code: PdfFailure | CappedEnd,
  request: PdfRequest,
  limits: CappedLimits,
  detail: string,
): KbsyncError {
  const subject = request.path;
  const cause = new Error(detail);
  switch (code) {
    case "encrypted_pdf":
      return new KbsyncError("the PDF is protected by a password", {
        code,
        subject,
        hint: "save a copy without the password and send that",
        cause,
      });
    case "damaged_pdf":
      return new KbsyncError("the PDF is damaged and cannot be read", {
        code,
        subject,
        hint: "open it and save or print it to a new PDF",
        cause,
      });
    case "too_many_pages":
      return new KbsyncError(`the PDF says that it has ${detail}, more than a file of its size can hold`, {
        code,
        subject,
        hint: "open it and print it to a new PDF",
        cause,
      });
    case "text_too_large":
      return new KbsyncError(`the PDF holds more text than the limit of ${request.charsMax} characters`, {
        code,
        subject,
        hint: "split the document",
        cause,
      });
    case "memory":
      return new KbsyncError(`reading the PDF takes more memory than the limit of ${limits.memoryMb} MB`, {
        code: "extraction_memory",
        subject,
        hint: "split the document, or print it to a new PDF",
        cause,
      });
    case "time":
      return new KbsyncError(
        `reading the PDF takes longer than a file of its size may (${timeWords(request.bytes, limits)})`,
        {
          code: "extraction_timeout",
          subject,
          hint: "split the document, or print it to a new PDF",
          cause,
        },
      );
    case "fall":
      return new KbsyncError("the process that reads the PDF ends over it, twice", {
        code: "extraction_crashed",
        subject,
        hint: "open it and print it to a new PDF",
        cause,
      });
    case "unable":
      return new KbsyncError("the PDF cannot be read at present", {
        code: "extraction_failed",
        subject,
        retryable: true,
        cause,
      });
  }
}

/** What a PDF of so many bytes may take, in words. */
export function timeWords(bytes: number, { timeoutMs }: Pick<CappedLimits, "timeoutMs">): string {
  return `${Math.round(pdfCpuMs(bytes) / 1000)} s of processor time, ${timeoutMs / 1000} s in all`;
}
