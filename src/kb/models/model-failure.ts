import { oneLine } from "../../lib/one-line.ts";
import { retryAfterMs } from "../../lib/retry-after.ts";
import { APIConnectionError, APIConnectionTimeoutError, APIError } from "openai";
import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";
import type { ModelUsage } from "./price.ts";

/**
 * Whose matter a failure is. `unreachable`: nobody answered, or the endpoint is busy, which passes by itself. `refused`:
 * asking again changes nothing. `unusable`: what was answered is none.
 */
export type FailureKind = "unreachable" | "refused" | "unusable";

/** Why a model gave no answer: code `model_timeout`, `model_busy` (its endpoint asks to come later) or `model_failed`. */
export class ModelFailure extends KbsyncError {
  readonly kind: FailureKind;
  /** Of the endpoint's refusal, where it gave one. */
  readonly status: number | undefined;
  /** Of an answer that is none: its tokens are spent all the same. */
  readonly usage: ModelUsage | undefined;
  constructor(message: string, options: FailureFacts) {
    const { code, subject, retryAfterSeconds } = options;
    super(message, { code, subject, retryable: true, retryAfterSeconds });
    this.kind = options.kind;
    this.status = options.status;
    this.usage = options.usage;
  }

  /** The same failure as the second of two. */
  after(first: string): ModelFailure {
    const { code, subject = "", kind, status, retryAfterSeconds } = this;
    return new ModelFailure(`${first}; then ${this.message}`, {
      code,
      subject,
      kind,
      status,
      retryAfterSeconds,
    });
  }

  /** Whether the endpoint refuses the question for a field of it, which it names: some know fewer than others. */
  refuses(field: string): boolean {
    if (this.status !== 400 && this.status !== 422) return false;
    // The model's own name may hold the field's.
    const model = this.subject ?? "";
    return this.message.slice(failedWords(model).length).replaceAll(model, "").includes(field);
  }
}

function failedWords(model: string): string {
  return `the model ${model} failed: `;
}

interface FailureFacts {
  readonly code: string;
  /** The model that was asked. */
  readonly subject: string;
  readonly kind: FailureKind;
  readonly status?: number | undefined;
  readonly usage?: ModelUsage;
  readonly retryAfterSeconds?: number | undefined;
}

/** An answer that cannot be used, in words that say what it did. */
export function unusableAnswer(model: string, did: string, usage: ModelUsage): ModelFailure {
  const facts = { code: "model_failed", subject: model, kind: "unusable" as const, usage };
  return new ModelFailure(`${failedWords(model)}${did}`, facts);
}

/** Who was asked, and how. */
export interface AskedModel {
  readonly model: string;
  /** Some endpoints tell it in their refusal of it: it is taken out of their words. */
  readonly apiKey: string | undefined;
  readonly timeoutMs: number;
}

/** Longest piece of an endpoint's own words that is passed on. */
const WORDS_CHARS_MAX = 300;
/** A busy endpoint that does not say when to come again is asked again after this. */
const BUSY_MS = 10_000;
/** Statuses of an endpoint that is busy, beside all from 500 on. */
const BUSY: ReadonlySet<number> = new Set([408, 409, 425, 429]);

/**
 * What asking a model threw, in words: which model, and what its endpoint said. It has no `cause`, whose own words, key
 * and all, would stand in the log.
 */
export function modelFailure(error: unknown, { model, apiKey, timeoutMs }: AskedModel): ModelFailure {
  const status = error instanceof APIError ? error.status : undefined;
  const facts = { subject: model, kind: failureKind(error), status };
  if (isTimeout(error)) {
    const message = `the model ${model} did not answer within ${timeoutMs / 1000} s`;
    return new ModelFailure(message, { ...facts, code: "model_timeout" });
  }
  const message = `${failedWords(model)}${wordsOf(error, apiKey)}`;
  if (status === 429 || status === 503) {
    const retryAfterSeconds = Math.ceil((requestedWaitMs(error) ?? BUSY_MS) / 1000);
    return new ModelFailure(message, { ...facts, code: "model_busy", retryAfterSeconds });
  }
  return new ModelFailure(message, { ...facts, code: "model_failed" });
}

/** How long an endpoint asks to wait, in milliseconds; undefined where it asks for nothing. */
export function requestedWaitMs(error: unknown): number | undefined {
  if (!(error instanceof APIError)) return undefined;
  // Not of any standard, but OpenAI's and Azure's.
  const exact = Number.parseFloat(error.headers?.get("retry-after-ms") ?? "");
  if (exact >= 0) return exact;
  return retryAfterMs(error.headers?.get("retry-after"), Date.now());
}

/** Of what asking threw. */
export function failureKind(error: unknown): FailureKind {
  if (isTimeout(error) || error instanceof APIConnectionError) return "unreachable";
  if (isTooLong(error)) return "unusable";
  if (error instanceof APIError && error.status !== undefined) {
    return BUSY.has(error.status) || error.status >= 500 ? "unreachable" : "refused";
  }
  return connectionWords(error) === undefined ? "unusable" : "unreachable";
}

function isTimeout(error: unknown): boolean {
  return (
    error instanceof APIConnectionTimeoutError || (error instanceof Error && error.name === "TimeoutError")
  );
}

/** The client's word for more bytes than it takes. */
function isTooLong(error: unknown): boolean {
  let cause: unknown = error;
  for (let depth = 0; depth < CAUSES_MAX && cause instanceof Error; depth++) {
    if (codeOf(cause) === "UND_ERR_RES_EXCEEDED_MAX_SIZE") return true;
    cause = cause.cause;
  }
  return false;
}

function wordsOf(error: unknown, apiKey: string | undefined): string {
  if (isTooLong(error)) return "its endpoint answered more than any model writes";
  const broken = connectionWords(error);
  if (error instanceof APIConnectionError) return broken ?? "its endpoint broke off the connection";
  const own = (words: string): string =>
    cut(apiKey === undefined ? words : words.replaceAll(apiKey, "(the key)"));
  if (error instanceof APIError) {
    const status = error.status === undefined ? "" : `its endpoint answered ${error.status}: `;
    return `${status}${own(error.message.replace(/^\d{3} /, ""))}`;
  }
  return broken ?? own(messageOf(error));
}

/** Causes that are looked into behind a failure. */
const CAUSES_MAX = 5;

/** Of certificates, and of an endpoint that speaks no TLS at all. */
const TLS_CODE = /CERT|TLS|SSL|SIGNATURE|ISSUER|CRL|^EPROTO$/;

/** What the system says of the connection, where it is to blame. Its codes hold no key; those of an endpoint might. */
function connectionWords(error: unknown): string | undefined {
  let cause: unknown = error;
  for (let depth = 0; depth < CAUSES_MAX && cause instanceof Error; depth++) {
    const code = cause instanceof APIError ? undefined : codeOf(cause);
    if (code === "ECONNREFUSED") return "its endpoint refuses the connection";
    if (code === "ENOTFOUND" || code === "EAI_AGAIN") return "there is no host of its endpoint's name";
    if (code !== undefined && TLS_CODE.test(code))
      return `there is no safe connection to its endpoint (${code})`;
    if (code !== undefined && /^(?:E[A-Z]+|UND_ERR_\w+)$/.test(code))
      return `its endpoint broke off the connection (${code})`;
    if (code !== undefined) return `the connection to its endpoint failed (${code})`;
    cause = cause.cause;
  }
  return undefined;
}

function cut(words: string): string {
  const line = oneLine(words);
  return line.length <= WORDS_CHARS_MAX ? line : `${line.slice(0, WORDS_CHARS_MAX)}…`;
}
