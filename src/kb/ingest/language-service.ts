import { codeOf, KbsyncError } from "../../lib/failure.ts";
import type { ModelHealth } from "../models/model-health.ts";
import type { TextModel } from "./agentic/text-model.ts";

/** Cooldown after a failure: without it each document would wait in vain, for minutes if the model hangs. */
const COOLDOWN_MS = 30_000;

/** Public state of the language model. Holds no addresses and no causes; those go to the log. */
export interface LanguageState {
  readonly state: "off" | "ready" | "failing";
  /** One sentence for a person. */
  readonly message: string;
}

/** A language model with its health. */
export interface LanguageService {
  /** Runs work with the model. Throws `language_model_resting` during the cooldown after a failure. */
  run<T>(this: void, work: (model: TextModel) => Promise<T>): Promise<T>;
  state(): LanguageState;
}

/** State without a configured model. */
export const NO_LANGUAGE_MODEL: LanguageState = {
  state: "off",
  message:
    "No language model is configured; the builtin agent answers questions, and agentic chunking splits by meaning.",
};

/** Opens a model with a cooldown after failures. Reports to `health`, which questions report to as well. */
export function openLanguageService(
  model: TextModel,
  nowMs: () => number,
  health: ModelHealth,
): LanguageService {
  let cooldownUntilMs = 0;
  return {
    run: async (work) => {
      if (nowMs() < cooldownUntilMs) {
        throw new KbsyncError("the language model failed a moment ago and is not called for a while", {
          code: "language_model_resting",
          subject: model.name,
          retryable: true,
        });
      }
      try {
        const result = await work(model);
        health.reportSuccess(model.name);
        return result;
      } catch (error) {
        // An unusable answer concerns one document; an outage or a refusal concerns all.
        const code = codeOf(error);
        const isOutage = code === "language_model_unreachable" || code === "language_model_refused";
        if (isOutage && error instanceof KbsyncError) {
          cooldownUntilMs = nowMs() + COOLDOWN_MS;
          health.reportOutage(model.name, error);
        }
        throw error;
      }
    },
    state: () =>
      health.isFailing(model.name)
        ? {
            state: "failing",
            message: `The language model ${model.name} fails; until it works again, agents answer by their second model, if they have one, and agentic chunking splits by meaning.`,
          }
        : { state: "ready", message: `Questions and agentic chunking use ${model.name}.` },
  };
}
