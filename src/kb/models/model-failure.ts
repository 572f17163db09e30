import { oneLine } from "../../lib/one-line.ts";
import { retryAfterMs } from "../../lib/retry-after.ts";
import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";
import { EndpointRefusal, EndpointUnreachable } from "./endpoint.ts";
import type { ModelUsage } from "./price.ts";

/**
 * Kind of a failure. `unreachable`: the endpoint does not answer or is busy; transient. `refused`: a retry gives the same
 * result. `unusable`: the endpoint answered, but without a usable answer.
 */
export type FailureKind = "unreachable" | "refused" | "unusable";

/** A model gave no answer: code `model_timeout`, `model_busy` (the endpoint asks to retry later) or `model_failed`. */
export class ModelFailure extends KbsyncError {
  readonly kind: FailureKind;
  /** HTTP status of the endpoint's refusal, if it sent one. */
  readonly status: number | undefined;
  /** Usage of an unusable answer, whose tokens are spent. */
  readonly usage: ModelUsage | undefined;
  constructor(message: string, options: FailureFacts) {
    const { code, subject, retryAfterSeconds } = options;
    super(message, { code, subject, retryable: true, retryAfterSeconds });
    this.kind = options.kind;
    this.status = options.status;
    this.usage = options.usage;
  }

  /** Returns this failure with the message of an earlier one in front. */
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

  /** Whether the endpoint refuses the request because of `field`, which it names: not all endpoints support every field. */
  refuses(field: string): boolean {
    if (this.status !== 400 && this.status !== 422) return false;
    // The model's name may contain the field's name.
    const model = this.subject ?? "";
    return this.message.slice(messagePrefix(model).length).replaceAll(model, "").includes(field);
  }
}

function messagePrefix(model: string): string {
  return `the model ${model} failed: `;
}

interface FailureFacts {
  readonly code: string;
  /** The model called. */
  readonly subject: string;
  readonly kind: FailureKind;
  readonly status?: number | undefined;
  readonly usage?: ModelUsage;
  readonly retryAfterSeconds?: number | undefined;
}

/** Failure for an unusable answer; `problem` continues "the model X failed: ". */
export function unusableAnswer(model: string, problem: string, usage: ModelUsage): ModelFailure {
  const facts = { code: "model_failed", subject: model, kind: "unusable" as const, usage };
  return new ModelFailure(`${messagePrefix(model)}${problem}`, facts);
}

/** The model called, with its key and timeout. */
export interface CalledModel {
  readonly model: string;
  /** Redacted from messages: some endpoints echo a key that they refuse. */
  readonly apiKey: string | undefined;
  readonly timeoutMs: number;
}

/** Longest part of an endpoint's message that is passed on. */
const MESSAGE_CHARS_MAX = 300;
/** Default `Retry-After` of a busy endpoint. */
const BUSY_MS = 10_000;
/** Statuses of a busy endpoint, besides all from 500 on. */
const BUSY: ReadonlySet<number> = new Set([408, 409, 425, 429]);

/**
 * Converts an error of a model call into a ModelFailure with a message for a person. Sets no `cause`: its message, which may
 * contain the key, would reach the log.
 */
export function modelFailure(error: unknown, { model, apiKey, timeoutMs }: CalledModel): ModelFailure {
  const status = error instanceof EndpointRefusal ? error.status : undefined;
  const facts = { subject: model, kind: failureKind(error), status };
  const message = `${messagePrefix(model)}${problemOf(error, { apiKey, timeoutMs })}`;
  if (isTimeout(error)) return new ModelFailure(message, { ...facts, code: "model_timeout" });
  if (status === 429 || status === 503) {
    const retryAfterSeconds = Math.ceil((requestedWaitMs(error) ?? BUSY_MS) / 1000);
    return new ModelFailure(message, { ...facts, code: "model_busy", retryAfterSeconds });
  }
  return new ModelFailure(message, { ...facts, code: "model_failed" });
}

/** Longest wait that is passed on: an endpoint that asks for more is asked again after a day, and a number without a bound is no wait. */
const REQUESTED_MS_MAX = 24 * 3600 * 1000;

/** Returns the wait that an endpoint requests, in milliseconds, at most a day; undefined if it requests none. */
export function requestedWaitMs(error: unknown): number | undefined {
  if (!(error instanceof EndpointRefusal)) return undefined;
  // Not standard; sent by OpenAI and Azure.
  const exact = Number.parseFloat(error.headers?.get("retry-after-ms") ?? "");
  const waitMs = exact >= 0 ? exact : retryAfterMs(error.headers?.get("retry-after"), Date.now());
  return waitMs === undefined ? undefined : Math.min(waitMs, REQUESTED_MS_MAX);
}

/** Classifies an error of a model call. */
export function failureKind(error: unknown): FailureKind {
  if (isTimeout(error) || error instanceof EndpointUnreachable) return "unreachable";
  if (isTooLong(error)) return "unusable";
  if (error instanceof EndpointRefusal) {
    return BUSY.has(error.status) || error.status >= 500 ? "unreachable" : "refused";
  }
  return connectionProblem(error) === undefined ? "unusable" : "unreachable";
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === "TimeoutError";
}

/** Whether the response exceeded the client's size limit. */
function isTooLong(error: unknown): boolean {
  let cause: unknown = error;
  for (let depth = 0; depth < CAUSES_MAX && cause instanceof Error; depth++) {
    if (codeOf(cause) === "UND_ERR_RES_EXCEEDED_MAX_SIZE") return true;
    cause = cause.cause;
  }
  return false;
}

/** Describes an error of a model call, without the key. */
export function problemOf(
  error: unknown,
  { apiKey, timeoutMs }: Pick<CalledModel, "apiKey" | "timeoutMs">,
): string {
  if (isTimeout(error)) return `it did not answer within ${timeoutMs / 1000} s`;
  if (isTooLong(error)) return "its endpoint answered more than any model writes";
  const connection = connectionProblem(error);
  if (error instanceof EndpointUnreachable) return connection ?? "its endpoint closed the connection";
  const redacted = (message: string): string =>
    cut(apiKey === undefined ? message : message.replaceAll(apiKey, "(the key)"));
  if (error instanceof EndpointRefusal)
    return `its endpoint answered ${error.status}: ${redacted(error.message)}`;
  return connection ?? redacted(messageOf(error));
}

/** Depth of the cause chain that is searched. */
const CAUSES_MAX = 5;

/** Codes of certificate errors, and of an endpoint that does not speak TLS. */
const TLS_CODE = /CERT|TLS|SSL|SIGNATURE|ISSUER|CRL|^EPROTO$/;

/** Describes a connection error of the system; undefined for any other error. System codes never contain the key. */
function connectionProblem(error: unknown): string | undefined {
  let cause: unknown = error;
  for (let depth = 0; depth < CAUSES_MAX && cause instanceof Error; depth++) {
    const code = codeOf(cause);
    if (code === "ECONNREFUSED") return "its endpoint refuses the connection";
    if (code === "ENOTFOUND" || code === "EAI_AGAIN") return "the host name of its endpoint does not resolve";
    if (code !== undefined && TLS_CODE.test(code))
      return `the TLS connection to its endpoint failed (${code})`;
    if (code !== undefined && /^(?:E[A-Z]+|UND_ERR_\w+)$/.test(code))
      return `its endpoint closed the connection (${code})`;
    if (code !== undefined) return `the connection to its endpoint failed (${code})`;
    cause = cause.cause;
  }
  return undefined;
}

function cut(message: string): string {
  const line = oneLine(message);
  return line.length <= MESSAGE_CHARS_MAX ? line : `${line.slice(0, MESSAGE_CHARS_MAX)}…`;
}
