import type { KbsyncError } from "../../lib/failure.ts";
import type { ModelFailure } from "./model-failure.ts";

/** Consecutive failures, each possibly caused by its question, after which a model counts as failing. */
const STRIKES_MAX = 3;
/** Models with failures that are tracked. Agents may name any number of models; the oldest entry is evicted. */
const MODELS_MAX = 1000;
/** Refusals caused by the request: too long, or of a kind that the model does not accept. */
const REQUEST_ERRORS: ReadonlySet<number> = new Set([400, 413, 415, 422]);

/** Health of each model, derived from the results of its calls. */
export interface ModelHealth {
  reportSuccess(model: string): void;
  /** Marks the model as failing. */
  reportOutage(model: string, error: KbsyncError): void;
  /** Reports a failed question. The cause may be the model or the question. */
  reportFailure(model: string, failure: ModelFailure): void;
  isFailing(model: string): boolean;
}

/** Starts with all models healthy. Calls `onChange` when a model starts to fail, and with `undefined` when it recovers. */
export function openModelHealth(
  onChange: (model: string, problem: KbsyncError | undefined) => void,
): ModelHealth {
  /** Strikes of each model that did not answer its last question; a model with `STRIKES_MAX` is failing. */
  const strikes = new Map<string, number>();
  const isFailing = (model: string): boolean => strikes.get(model) === STRIKES_MAX;
  const strike = (model: string, count: number, error: KbsyncError): void => {
    const before = strikes.get(model) ?? 0;
    const after = Math.min(STRIKES_MAX, before + count);
    strikes.set(model, after);
    const [oldest = model] = strikes.keys();
    if (strikes.size > MODELS_MAX) strikes.delete(oldest);
    if (before < STRIKES_MAX && after === STRIKES_MAX) onChange(model, error);
  };
  return {
    reportSuccess: (model) => {
      const wasFailing = isFailing(model);
      strikes.delete(model);
      if (wasFailing) onChange(model, undefined);
    },
    reportOutage: (model, error) => strike(model, STRIKES_MAX, error),
    reportFailure: (model, failure) => strike(model, mayBeRequest(failure) ? 1 : STRIKES_MAX, failure),
    isFailing,
  };
}

/** Whether the request rather than the model may have caused the failure. */
function mayBeRequest({ kind, status }: ModelFailure): boolean {
  return kind === "unusable" || (kind === "refused" && REQUEST_ERRORS.has(status ?? 0));
}
