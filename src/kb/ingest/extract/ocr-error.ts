import { endFailure, endWords } from "../../../lib/capped/end-failure.ts";
import type { CappedEnd, CappedLimits } from "../../../lib/capped/process.ts";
import { KbsyncError } from "../../../lib/failure.ts";
import type { OcrRequest } from "./ocr-child.ts";
import type { OcrFailure } from "./ocr-picture.ts";

const SAVE_AGAIN = "open it and save it again";
const HINTS = {
  memory: "make the picture smaller",
  time: "split the document, make the picture smaller, or print it to a new PDF",
  hang: SAVE_AGAIN,
  fall: SAVE_AGAIN,
};

/** Returns the error for a failed text recognition. Its message contains no path. */
export function ocrError(
  code: OcrFailure | CappedEnd,
  { path: subject, pixelsMax, pagesMax }: Pick<OcrRequest, "path" | "pixelsMax" | "pagesMax">,
  limits: Pick<CappedLimits, "memoryMb">,
  detail: string,
): KbsyncError {
  const facts = { subject, cause: new Error(detail) };
  const refused = (message: string, hint: string): KbsyncError =>
    new KbsyncError(message, { ...facts, code, hint });
  switch (code) {
    case "image_too_large":
      return refused(
        `the image has ${detail} pixels, more than the limit of ${pixelsMax / 1_000_000} million`,
        "make it smaller: text needs no more than 300 dots an inch",
      );
    case "damaged_image":
      return refused("the image is damaged and cannot be read", SAVE_AGAIN);
    case "damaged_pdf":
      return refused(
        "the pages of the PDF cannot be drawn, so their text cannot be recognised",
        "open it and print it to a new PDF",
      );
    case "too_many_pages":
      return refused(
        `the file has ${detail} whose text has to be recognised, more than the limit of ${pagesMax}`,
        "split the document, or give it a text layer (ocrmypdf does)",
      );
    case "memory":
    case "time":
    case "hang":
    case "fall":
    case "busy":
    case "unable":
      return endFailure(code, endWords("recognising text", limits, detail), facts, HINTS);
  }
}
