import { type FailureFacts, KbsyncError } from "../failure.ts";
import type { CappedEnd, CappedLimits } from "./process.ts";

/** How the end of a child process reads in a failure. `work`: what it did, as `reading the PDF`. */
export function endWords(work: string, { memoryMb, timeoutMs }: CappedLimits): Record<CappedEnd, string> {
  return {
    memory: `${work} takes more memory than the limit of ${memoryMb} MB`,
    time: `${work} takes longer than the limit of ${timeoutMs / 1000} s`,
    fall: `the process ${work} crashed, twice`,
    unable: `${work} is not possible at present`,
  };
}

/** Codes of the service for each end; with `unable` nothing is known of the document, and the same request may succeed. */
export const END_CODES = {
  memory: "extraction_memory",
  time: "extraction_timeout",
  fall: "extraction_crashed",
  unable: "extraction_failed",
} as const satisfies Record<CappedEnd, string>;

/** The failure of a document whose child process ended instead of answering. */
export function endFailure(
  end: CappedEnd,
  words: Record<CappedEnd, string>,
  facts: Pick<FailureFacts, "subject" | "hint" | "cause">,
): KbsyncError {
  return new KbsyncError(words[end], { ...facts, code: END_CODES[end], retryable: end === "unable" });
}
