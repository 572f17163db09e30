/** Details of an expected failure. */
export interface FailureFacts {
  /** Stable snake_case identifier for programs. */
  readonly code: string;
  /** The path, url or row concerned. */
  readonly subject?: string;
  /** Whether the same call may succeed later without any change. */
  readonly retryable?: boolean;
  /** The remedy, for people. */
  readonly hint?: string | undefined;
  /** Seconds after which the same call may succeed. */
  readonly retryAfterSeconds?: number | undefined;
  readonly cause?: unknown;
}

/** An expected failure. The message says what failed, on what, what was expected and what came. */
export class KbsyncError extends Error {
  override readonly name = "KbsyncError";
  readonly code: string;
  readonly subject: string | undefined;
  readonly retryable: boolean;
  readonly hint: string | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(message: string, facts: FailureFacts) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.code = facts.code;
    this.subject = facts.subject;
    this.retryable = facts.retryable ?? false;
    this.hint = facts.hint;
    this.retryAfterSeconds = facts.retryAfterSeconds;
  }
}

/**
 * Runs synchronous work whose errors carry no stack. Below many awaits, capturing a stack costs more than the failed
 * work, and a client decides how often that happens.
 */
export function withoutStacks<T>(work: () => T): T {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return work();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** Returns the message of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Returns the `code` of a system error (`ENOENT`, …) or of a KbsyncError, or undefined. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/** Whether a system error means that nothing exists at the path, not that it is inaccessible. */
export function isAbsence(error: unknown): boolean {
  const code = codeOf(error);
  return code === "ENOENT" || code === "ENOTDIR";
}
