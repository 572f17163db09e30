import { connectionProblem } from "../../lib/connection-problem.ts";
import { KbsyncError } from "../../lib/failure.ts";

/** Failure of a fetch. `why` continues the address, as in "https://x: the server answered 404". */
export function linkFailure(why: string, subject: string, cause?: unknown): KbsyncError {
  return new KbsyncError(why, { code: "link_failed", subject, ...(cause === undefined ? {} : { cause }) });
}

/** Converts an error of a fetch into a failure whose message a person can act on. */
export function fetchFailure(error: unknown, url: URL, timeoutMs: number): KbsyncError {
  if (error instanceof KbsyncError) return error;
  if (error instanceof DOMException && error.name === "TimeoutError") {
    return linkFailure(`it took longer than ${timeoutMs / 1000} s`, url.host, error);
  }
  return linkFailure(connectionProblem(error, url.hostname), url.host, error);
}
