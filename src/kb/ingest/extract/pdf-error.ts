import { endFailure, endWords } from "../../../lib/capped/end-failure.ts";
import type { CappedEnd, CappedLimits } from "../../../lib/capped/process.ts";
import { KbsyncError } from "../../../lib/failure.ts";
import type { PdfFailure, PdfRequest } from "./pdf-child.ts";

const PRINT_AGAIN = "open it and print it to a new PDF";
const SPLIT = "split the document, or print it to a new PDF";
const HINTS = { memory: SPLIT, time: SPLIT, hang: PRINT_AGAIN, fall: PRINT_AGAIN };

/**
 * Returns the error for a failed PDF. `detail`, usually a message of PDF.js, becomes its cause. The error's own message contains no
 * foreign text, file names or paths.
 */
export function pdfError(
  code: PdfFailure | CappedEnd,
  { path: subject, charsMax }: PdfRequest,
  limits: Pick<CappedLimits, "memoryMb">,
  detail: string,
): KbsyncError {
  const facts = { subject, cause: new Error(detail) };
  const refused = (message: string, hint: string): KbsyncError =>
    new KbsyncError(message, { ...facts, code, hint });
  switch (code) {
    case "encrypted_pdf":
      return refused("the PDF is protected by a password", "save a copy without the password and send that");
    case "damaged_pdf":
      return refused("the PDF is damaged and cannot be read", "open it and save or print it to a new PDF");
    case "too_many_pages":
      return refused(`the PDF claims to have ${detail}, more than a file of its size can hold`, PRINT_AGAIN);
    case "text_too_large":
      return refused(
        `the PDF holds more text than the limit of ${charsMax} characters`,
        "split the document",
      );
    case "memory":
    case "time":
    case "hang":
    case "fall":
    case "busy":
    case "unable":
      return endFailure(code, endWords("reading the PDF", limits, detail), facts, HINTS);
  }
}
