import type { Admission } from "./http/limits/admission.ts";
import type { Health } from "./http/routes/health-route.ts";
import { NO_LANGUAGE_MODEL, type LanguageService } from "./ingest/language-service.ts";
import type { Model, ModelState } from "./ingest/model.ts";
import type { Reranker, RerankerState } from "./search/reranker.ts";

/** The parts whose state health reports. */
export interface HealthParts {
  readonly admission: Pick<Admission, "state">;
  readonly version: string;
  readonly model: Model;
  readonly reranker: Reranker | undefined;
  readonly language: LanguageService | undefined;
  readonly isBackfilling: boolean;
  readonly isDamaged: boolean;
  /** Whether a part of the store does not work at present. */
  readonly isFailing: boolean;
}

/** Returns the health of the service at present. */
export function healthOf({
  admission,
  version,
  model,
  reranker,
  language,
  isBackfilling,
  isDamaged,
  isFailing,
}: HealthParts): Health {
  const state = admission.state();
  const embedder = model.state();
  const judge = reranker?.state() ?? {
    state: "off",
    message: "No reranker is configured; high_accuracy reranks by sentences.",
  };
  return {
    status: state === "ready" ? storeStatus(isDamaged, isFailing) : state,
    version,
    embedder,
    reranker: judge,
    languageModel: language?.state() ?? NO_LANGUAGE_MODEL,
    isBackfilling,
    tiers: {
      fastest: "words (BM25)",
      moderate: moderateNow(embedder.state),
      high_accuracy: highAccuracyNow(embedder.state, judge.state, isBackfilling),
    },
  };
}

function storeStatus(isDamaged: boolean, isFailing: boolean): Health["status"] {
  if (isDamaged) return "damaged";
  return isFailing ? "failing" : "ready";
}

function moderateNow(state: ModelState["state"]): string {
  switch (state) {
    case "off":
    case "unavailable":
      return "words alone (BM25), because there is no model";
    case "failing":
      return "words alone (BM25), while the model fails";
    case "idle":
    case "loading":
    case "ready":
      return "words and meaning (BM25 and vectors, fused)";
  }
}

/** Describes how `high_accuracy` searches at present. */
function highAccuracyNow(
  model: ModelState["state"],
  reranker: RerankerState["state"],
  isBackfilling: boolean,
): string {
  const found = moderateNow(model);
  if (reranker === "ready" || reranker === "idle") return `${found}, the best reranked by the reranker`;
  if (model === "off" || model === "unavailable" || model === "failing") return found;
  const pending = isBackfilling
    ? "; some documents keep their fused rank until their sentences are embedded"
    : "";
  return `${found}, the best reranked by their sentences${pending}`;
}
