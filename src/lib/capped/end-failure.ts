import { type FailureFacts, KbsyncError } from "../failure.ts";
import type { CappedEnd, CappedLimits } from "./process.ts";

/** Messages for each end of a child process. `work` names its task, such as `reading the PDF`; `detail` is that of the failure. */
export function endWords(
  work: string,
  { memoryMb }: Pick<CappedLimits, "memoryMb">,
  detail: string,
): Record<CappedEnd, string> {
  return {
    memory: `${work} takes more memory than the limit of ${memoryMb} MB`,
    time: `${work} ${detail}`,
    hang: `${work} ${detail}, twice`,
    busy: `${work} ${detail}: this machine is too busy`,
    fall: `the process ${work} crashed, twice`,
    unable: `${work} is not possible at present`,
  };
}

/** The service's error code for each end. */
export const END_CODES = {
  memory: "extraction_memory",
  time: "extraction_timeout",
  hang: "extraction_timeout",
  busy: "extractor_busy",
  fall: "extraction_crashed",
  unable: "extraction_failed",
} as const satisfies Record<CappedEnd, string>;

/** Whether the same request may succeed later: the end says nothing about the document. */
export function isTemporary(end: string): end is "busy" | "unable" {
  return end === "busy" || end === "unable";
}

/** Creates the failure of a document whose child process ended without an answer. */
export function endFailure(
  end: CappedEnd,
  messages: Record<CappedEnd, string>,
  facts: Pick<FailureFacts, "subject" | "cause">,
  hints: Partial<Record<CappedEnd, string>> = {},
): KbsyncError {
  const hint = end === "busy" ? "try again when it has less to do" : hints[end];
  return new KbsyncError(messages[end], {
    ...facts,
    code: END_CODES[end],
    retryable: isTemporary(end),
    hint,
  });
}
