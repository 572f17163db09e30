import type { HealthParts } from "./health.ts";
import { NO_LANGUAGE_MODEL } from "./ingest/language-service.ts";
import type { Admission } from "./http/limits/admission.ts";
import type { ServiceFigures } from "./observer.ts";
import type { Store } from "./store/store.ts";

/** The parts whose figures the metrics report. */
export interface FigureParts extends Pick<HealthParts, "model" | "reranker" | "language"> {
  readonly store: Store;
  readonly admission: Pick<Admission, "state" | "inFlight">;
  readonly nowMs: () => number;
}

/** Reads the figures of the service. Rejects if the store cannot be read. */
export async function figuresOf(parts: FigureParts): Promise<ServiceFigures> {
  const { store, admission, model, reranker, language, nowMs } = parts;
  const { records, queue } = store;
  const [documents, failed, questions, messages] = await Promise.all([
    queue.figures("ingest", undefined, nowMs()),
    records.failedResources(undefined),
    queue.figures("chat", undefined),
    queue.figures("webhook", undefined),
  ]);
  const secondsSince = (ms: number | null): number => (ms === null ? 0 : Math.max(0, (nowMs() - ms) / 1000));
  return {
    state: admission.state(),
    requestsInFlight: admission.inFlight(),
    jobsWaiting: documents.waiting,
    oldestJobSeconds: secondsSince(documents.oldestMs),
    jobsOverdue: documents.overdue,
    questionsWaiting: questions.waiting,
    oldestQuestionSeconds: secondsSince(questions.oldestMs),
    messages: { waiting: messages.waiting, failed: messages.failed },
    resourcesFailed: failed,
    models: {
      embedder: model.state().state,
      reranker: reranker?.state().state ?? "off",
      language_model: (language?.state() ?? NO_LANGUAGE_MODEL).state,
    },
  };
}
