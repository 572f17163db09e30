import { KbsyncError } from "../../../lib/failure.ts";
import type { PdfFailure, PdfRequest } from "./pdf-child.ts";
import type { PdfLimits } from "./pdf-process.ts";

/** Signals by which Node or the kernel ends a process that asks for more memory than it may have. */
const MEMORY_SIGNALS: ReadonlySet<string> = new Set(["SIGABRT", "SIGTRAP", "SIGILL", "SIGKILL"]);

/** Most of PDF.js's own words that a message repeats: they can quote the document. */
const DETAIL_CHARS_MAX = 200;

/** Every way in which reading a PDF fails, by its stable code. */
export type PdfErrorCode = PdfFailure | "extraction_timeout";

/** What the end of the child tells about the document it was reading. */
export function codeOfExit(code: number | null, killedBy: string | null, stderr: string): PdfErrorCode {
  if (killedBy === "SIGXCPU") return "extraction_timeout";
  const memory = /out of memory|allocation failed|heap limit/i.test(stderr);
  if (memory || code === 134 || (killedBy !== null && MEMORY_SIGNALS.has(killedBy)))
    return "extraction_memory";
  return "extraction_failed";
}

/** The error a caller of `extractText` sees. `detail` goes into its cause; file names and paths stay out of the message. */
export function pdfError(
  code: PdfErrorCode,
  request: PdfRequest,
  limits: PdfLimits,
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
      return new KbsyncError(`the PDF is damaged and cannot be read: ${detail.slice(0, DETAIL_CHARS_MAX)}`, {
        code,
        subject,
        hint: "open it and save or print it to a new PDF",
        cause,
      });
    case "text_too_large":
      return new KbsyncError(`the PDF holds more text than the limit of ${request.charsMax} characters`, {
        code,
        subject,
        hint: "split the document",
        cause,
      });
    case "extraction_memory":
      return new KbsyncError(`reading the PDF takes more memory than the limit of ${limits.memoryMb} MB`, {
        code,
        subject,
        hint: "split the document, or print it to a new PDF",
        cause,
      });
    case "extraction_timeout":
      return new KbsyncError(`reading the PDF takes longer than the limit of ${limits.timeoutMs / 1000} s`, {
        code,
        subject,
        hint: "split the document, or print it to a new PDF",
        cause,
      });
    case "extraction_failed":
      return new KbsyncError("the PDF could not be read", {
        code,
        subject,
        retryable: true,
        cause,
      });
  }
}
