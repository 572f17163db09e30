import { endWords } from "../../lib/capped/end-failure.ts";
import { type AskOptions, openCappedPool } from "../../lib/capped/pool.ts";
import type { CappedEnd } from "../../lib/capped/process.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { entryUrl } from "../../lib/package.ts";
import type { Conversion, ConversionFailure, ConversionRequest } from "./conversion.ts";

/** Maximum length of a document's text: no service accepts more than 32 MB. */
export const CHARS_MAX = 32 * 1024 * 1024;

const LIMITS = {
  processes: 2,
  /** In addition to what Node needs: a workbook of a million cells takes 300 MB. */
  memoryMb: 512,
  /** Reading takes milliseconds to seconds. A document that takes longer is probably crafted. */
  cpuMs: 60_000,
  idleMs: 10_000,
};

/**
 * The child processes that read documents. Two keep up with what a service accepts, and starting one costs 0.2 s. They start
 * with the first document, end after ten idle seconds, and never keep the program running.
 */
const pool = openCappedPool<ConversionRequest, Conversion, ConversionFailure>(
  { module: entryUrl("formats/conversion/convert-child"), failure: conversionError },
  LIMITS,
);

/**
 * Extracts the text of a file that was read and hashed. Throws a KbsyncError with code `refused` if the document cannot be
 * read until it changes; its message gives the reason. No other failure is the document's fault.
 */
export async function convertDocument(
  request: ConversionRequest,
  options: Pick<AskOptions, "signal" | "onUsed">,
): Promise<Conversion> {
  const [conversion] = await askTwice(request, { ...options, lane: "backlog" });
  if (conversion === undefined) throw conversionError("unable", request, "no answer came");
  return conversion;
}

/** Reads a mail again without its attachments if they exceed the memory or the time for one document. */
async function askTwice(request: ConversionRequest, options: AskOptions): Promise<readonly Conversion[]> {
  try {
    return await pool.ask(request, options);
  } catch (error) {
    const isRefused = error instanceof KbsyncError && error.code === "refused";
    if (!isRefused || request.container !== "mail") throw error;
    return await pool.ask({ ...request, withAttachments: false }, options);
  }
}

/** Returns the error for a failed conversion. */
export function conversionError(
  code: ConversionFailure | CappedEnd,
  request: ConversionRequest,
  detail: string,
): KbsyncError {
  const refused = (words: string): KbsyncError =>
    new KbsyncError(words, { code: "refused", subject: request.path, cause: new Error(detail) });
  switch (code) {
    case "refused":
      return refused(`its text cannot be read: ${detail.slice(0, 300)}`);
    case "deep":
      return refused("its text cannot be read: its parts are nested too deeply");
    case "damaged":
      return refused(
        "its text cannot be read: it is damaged, or not quite of the format that it seems to be",
      );
    case "hang":
    case "busy":
    case "unable":
      return new KbsyncError(endWords("reading its text", LIMITS, detail)[code], {
        code: code === "busy" ? "READER_BUSY" : "READER_UNABLE",
        subject: request.path,
        retryable: true,
        cause: new Error(detail),
      });
    case "memory":
    case "time":
    case "fall":
      return refused(endWords("reading its text", LIMITS, detail)[code]);
  }
}
