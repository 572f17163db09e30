import { endWords } from "../../../lib/capped/end-failure.ts";
import { openCappedPool } from "../../../lib/capped/pool.ts";
import type { CappedEnd } from "../../../lib/capped/process.ts";
import { KbsyncError } from "../../../lib/failure.ts";
import { siblingModule } from "../../../lib/sibling.ts";
import type { Conversion, ConversionFailure, ConversionRequest } from "./conversion.ts";

/** Longest text of a document: no service takes more than 32 MB. */
export const CHARS_MAX = 32 * 1024 * 1024;

const LIMITS = {
  processes: 2,
  /** Beyond what Node takes: a workbook of a million cells needs 300 MB. */
  memoryMb: 512,
  /** Reading takes milliseconds to seconds; more is a document that was made to take long. */
  timeoutMs: 60_000,
  idleMs: 10_000,
};

/**
 * The child processes of this program that read documents: two keep up with what a service takes, and starting one costs
 * 0.2 s. They start with the first document, end after ten idle seconds, and never keep the program alive.
 */
const pool = openCappedPool<ConversionRequest, Conversion, ConversionFailure>(
  { module: siblingModule(import.meta.url, "convert-child"), failure: failureOf },
  LIMITS,
);

/**
 * Takes the text out of a file that was read and hashed. Throws a KbsyncError with code `refused`, whose message says why
 * the document cannot be read until it changes; any other failure is not the document's fault.
 */
export async function convertDocument(
  request: ConversionRequest,
  signal: AbortSignal | undefined,
): Promise<Conversion> {
  const [conversion] = await askTwice(request, signal);
  if (conversion === undefined) throw failureOf("unable", request, "no answer came");
  return conversion;
}

/** A mail whose attachments cannot be read in the memory and the time of one document is read without them. */
async function askTwice(
  request: ConversionRequest,
  signal: AbortSignal | undefined,
): Promise<readonly Conversion[]> {
  try {
    return await pool.ask(request, { signal });
  } catch (error) {
    const isRefused = error instanceof KbsyncError && error.code === "refused";
    if (!isRefused || request.container !== "mail") throw error;
    return await pool.ask({ ...request, withAttachments: false }, { signal });
  }
}

function failureOf(
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
      return refused("its text cannot be read: its parts are nested beyond sense");
    case "damaged":
      return refused(
        "its text cannot be read: it is damaged, or not quite of the format that it seems to be",
      );
    case "unable":
      return new KbsyncError("the process that reads documents cannot work now", {
        code: "READER_UNABLE",
        subject: request.path,
        retryable: true,
        cause: new Error(detail),
      });
    case "memory":
    case "time":
    case "fall":
      return refused(endWords("reading its text", LIMITS)[code]);
  }
}
