import { codeOf, KbsyncError } from "../../lib/failure.ts";
import type { ModelHealth } from "../models/model-health.ts";
import type { TextModel } from "./agentic/text-model.ts";

/** After a failure the model is left alone so long: each document would wait for it in vain, for minutes where it hangs. */
const REST_MS = 30_000;

/** What the service tells everybody about its language model: no addresses, no causes; those are for the log. */
export interface LanguageState {
  readonly state: "off" | "ready" | "failing";
  /** One sentence for a person. */
  readonly message: string;
}

/** A language model with what is known of how it fares. */
export interface LanguageService {
  /** Works with the model. Throws `language_model_resting` while it is left alone after a failure. */
  run<T>(this: void, work: (model: TextModel) => Promise<T>): Promise<T>;
  state(): LanguageState;
}

/** The state where none is configured. */
export const NO_LANGUAGE_MODEL: LanguageState = {
  state: "off",
  message:
    "No language model is configured; the builtin agent answers questions, and agentic chunking splits by meaning.",
};

/** A model that is left alone after a failure. `watch` is told of documents here, and of questions where they are asked. */
export function openLanguageService(
  model: TextModel,
  nowMs: () => number,
  watch: ModelHealth,
): LanguageService {
  let restUntilMs = 0;
  return {
    run: async (work) => {
      if (nowMs() < restUntilMs) {
        throw new KbsyncError("the language model failed a moment ago and is left alone", {
          code: "language_model_resting",
          subject: model.name,
          retryable: true,
        });
      }
      try {
        const result = await work(model);
        watch.reportSuccess(model.name);
        return result;
      } catch (error) {
        // Nonsense is one document's matter; that nobody answers, or all is refused, is everybody's.
        const code = codeOf(error);
        const isAll = code === "language_model_unreachable" || code === "language_model_refused";
        if (isAll && error instanceof KbsyncError) {
          restUntilMs = nowMs() + REST_MS;
          watch.reportOutage(model.name, error);
        }
        throw error;
      }
    },
    state: () =>
      watch.isFailing(model.name)
        ? {
            state: "failing",
            message: `The language model ${model.name} fails; until it works again, agents answer by their second model, if they have one, and agentic chunking splits by meaning.`,
          }
        : { state: "ready", message: `Questions and agentic chunking ask ${model.name}.` },
  };
}
