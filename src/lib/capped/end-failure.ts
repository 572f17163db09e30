import { type FailureFacts, KbsyncError } from "../failure.ts";
import type { CappedEnd, CappedLimits } from "./process.ts";

/** Messages for each end of a child process. `work` names its task, such as `reading the PDF`. */
export function endWords(work: string, { memoryMb, timeoutMs }: CappedLimits): Record<CappedEnd, string> {
  return {
    memory: `${work} takes more memory than the limit of ${memoryMb} MB`,
    time: `${work} takes longer than the limit of ${timeoutMs / 1000} s`,
    fall: `the process ${work} crashed, twice`,
    unable: `${work} is not possible at present`,
  };
}

/** The service's error code for each end. `unable` says nothing about the document; the same request may succeed later. */
export const END_CODES = {
  memory: "extraction_memory",
  time: "extraction_timeout",
  fall: "extraction_crashed",
  unable: "extraction_failed",
} as const satisfies Record<CappedEnd, string>;

/** Creates the failure of a document whose child process ended without an answer. */
export function endFailure(
  end: CappedEnd,
  messages: Record<CappedEnd, string>,
  facts: Pick<FailureFacts, "subject" | "hint" | "cause">,
): KbsyncError {
  return new KbsyncError(messages[end], { ...facts, code: END_CODES[end], retryable: end === "unable" });
}
