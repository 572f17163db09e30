import type { KbsyncError } from "../../lib/failure.ts";
import type { ModelFailure } from "./model-failure.ts";

/** Failures in a row, each of which may be its question's own matter, that are taken for the model's. */
const DOUBTS_MAX = 3;
/** Models with trouble that are remembered. Agents name as many as they like; the one heard of first is forgotten. */
const MODELS_MAX = 1000;
/** Refusals of what was asked: too long, or of a kind that the model does not take. */
const OWN_MATTER: ReadonlySet<number> = new Set([400, 413, 415, 422]);

/** How models fare, by what came of asking them. */
export interface ModelWatch {
  works(model: string): void;
  /** It is in trouble. */
  fails(model: string, error: KbsyncError): void;
  /** A question failed, which may say something of the model or of the question. */
  failed(model: string, failure: ModelFailure): void;
  isFailing(model: string): boolean;
}

/** Opens it. `onChange` hears when a model begins to fail, and with `undefined` when it works again. */
export function openModelWatch(
  onChange: (model: string, problem: KbsyncError | undefined) => void,
): ModelWatch {
  /** Doubts of each model that did not answer its last question; `DOUBTS_MAX`: it fails. */
  const doubts = new Map<string, number>();
  const isFailing = (model: string): boolean => doubts.get(model) === DOUBTS_MAX;
  const doubt = (model: string, count: number, error: KbsyncError): void => {
    const before = doubts.get(model) ?? 0;
    const after = Math.min(DOUBTS_MAX, before + count);
    doubts.set(model, after);
    const [oldest = model] = doubts.keys();
    if (doubts.size > MODELS_MAX) doubts.delete(oldest);
    if (before < DOUBTS_MAX && after === DOUBTS_MAX) onChange(model, error);
  };
  return {
    works: (model) => {
      const wasFailing = isFailing(model);
      doubts.delete(model);
      if (wasFailing) onChange(model, undefined);
    },
    fails: (model, error) => doubt(model, DOUBTS_MAX, error),
    failed: (model, failure) => doubt(model, isDoubtful(failure) ? 1 : DOUBTS_MAX, failure),
    isFailing,
  };
}

function isDoubtful({ kind, status }: ModelFailure): boolean {
  return kind === "unusable" || (kind === "refused" && OWN_MATTER.has(status ?? 0));
}
