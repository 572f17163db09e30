import type { CappedEnd, CappedLimits } from "../../../lib/capped/process.ts";
import { KbsyncError } from "../../../lib/failure.ts";
import type { OcrRequest } from "./ocr-child.ts";
import type { OcrFailure } from "./ocr-picture.ts";
import { timeWords } from "./pdf-error.ts";

/** The error that a caller sees when text could not be recognised. No path is in its message. */
export function ocrError(
  code: OcrFailure | CappedEnd,
  {
    path: subject,
    bytes,
    pixelsMax,
    pagesMax,
  }: Pick<OcrRequest, "path" | "bytes" | "pixelsMax" | "pagesMax">,
  limits: CappedLimits,
  detail: string,
): KbsyncError {
  const cause = new Error(detail);
  switch (code) {
    case "image_too_large":
      return new KbsyncError(
        `the image has ${detail} pixels, more than the limit of ${pixelsMax / 1_000_000} million`,
        { code, subject, hint: "make it smaller: text needs no more than 300 dots an inch", cause },
      );
    case "damaged_image":
      return new KbsyncError("the image is damaged and cannot be read", {
        code,
        subject,
        hint: "open it and save it anew",
        cause,
      });
    case "damaged_pdf":
      return new KbsyncError("the pages of the PDF cannot be drawn, so their text cannot be recognised", {
        code,
        subject,
        hint: "open it and print it to a new PDF",
        cause,
      });
    case "too_many_pages":
      return new KbsyncError(
        `the file has ${detail} whose text has to be recognised, more than the limit of ${pagesMax}`,
        {
          code,
          subject,
          hint: "split the document, give it a text layer (ocrmypdf does), or raise kb.ocr.pagesMax",
          cause,
        },
      );
    case "memory":
      return new KbsyncError(`recognising text takes more memory than the limit of ${limits.memoryMb} MB`, {
        code: "extraction_memory",
        subject,
        hint: "make the picture smaller",
        cause,
      });
    case "time":
      return new KbsyncError(
        bytes === undefined
          ? `recognising text takes longer than the limit of ${limits.timeoutMs / 1000} s`
          : `recognising text takes longer than a page of a PDF of its size may (${timeWords(bytes, limits)})`,
        {
          code: "extraction_timeout",
          subject,
          hint: "split the document, make the picture smaller, or print it to a new PDF",
          cause,
        },
      );
    case "fall":
      return new KbsyncError("the process that recognises text ends over the picture, twice", {
        code: "extraction_crashed",
        subject,
        hint: "open it and save it anew",
        cause,
      });
    case "unable":
      return new KbsyncError("text cannot be recognised at present", {
        code: "extraction_failed",
        subject,
        retryable: true,
        cause,
      });
  }
}
