/** What an expected failure tells: a stable code for programs, its subject, and what a person can do. */
export interface FailureFacts {
  /** Stable snake_case word. */
  readonly code: string;
  /** What it happened to: a path, url or row. */
  readonly subject?: string;
  /** Whether the same call may succeed later without anybody changing anything. */
  readonly retryable?: boolean;
  /** What a person can do about it. */
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
 * Runs synchronous work whose errors carry no stack. Beneath many awaits taking one costs more than what failed, and whoever
 * sends what fails decides how often.
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

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The `code` of a system error (`ENOENT`, …) or of a KbsyncError; undefined when there is none. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
