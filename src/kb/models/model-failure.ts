import { APIConnectionError, APIConnectionTimeoutError, APIError } from "openai";
import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";

/** Longest piece of an endpoint's own words that is passed on. */
const WORDS_CHARS_MAX = 300;

/** What asking a model threw, in words: which model, and what its endpoint said. */
export function modelFailure(error: unknown, model: string, timeoutMs: number): KbsyncError {
  const facts = { subject: model, retryable: true, cause: error };
  if (error instanceof APIConnectionTimeoutError || isTimeout(error)) {
    return new KbsyncError(`the model ${model} did not answer within ${timeoutMs / 1000} s`, {
      ...facts,
      code: "model_timeout",
    });
  }
  return new KbsyncError(`the model ${model} failed: ${wordsOf(error)}`, { ...facts, code: "model_failed" });
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === "TimeoutError";
}

function wordsOf(error: unknown): string {
  const broken = connectionWords(error);
  if (error instanceof APIConnectionError) return broken ?? "its endpoint broke off the connection";
  if (error instanceof APIError) {
    const status = error.status === undefined ? "" : `its endpoint answered ${error.status}: `;
    return `${status}${cut(error.message.replace(/^\d{3} /, ""))}`;
  }
  return broken ?? cut(messageOf(error));
}

/** What the system says of the connection, where it is to blame. */
function connectionWords(error: unknown): string | undefined {
  let cause: unknown = error;
  for (let depth = 0; depth < 5 && cause instanceof Error; depth++) {
    const code = codeOf(cause);
    if (code === "ECONNREFUSED") return "its endpoint refuses the connection";
    if (code === "ENOTFOUND" || code === "EAI_AGAIN") return "there is no host of its endpoint's name";
    if (code !== undefined && /^(?:E[A-Z]+|UND_ERR_\w+)$/.test(code))
      return `its endpoint broke off the connection (${code})`;
    cause = cause.cause;
  }
  return undefined;
}

function cut(words: string): string {
  const line = words.replaceAll(/\s+/g, " ").trim();
  return line.length <= WORDS_CHARS_MAX ? line : `${line.slice(0, WORDS_CHARS_MAX)}…`;
}
