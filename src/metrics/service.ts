import type { Registry } from "prom-client";
import type { ServiceFigures, ServiceObserver } from "../kb/observer.ts";
import { setOneOf } from "./one-of.ts";
import { openSeries } from "./series.ts";

/** Measures the service. */
export interface ServiceMeasures extends ServiceObserver {
  set(figures: ServiceFigures): void;
  /** Resets all figures. */
  forget(): void;
}

/** Buckets in seconds, from a small search to the longest wait of a client. */
const SEARCH_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Buckets in seconds; reading a scanned book takes minutes. */
const WORK_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

const STATES = ["starting", "ready", "draining"] as const;
const OUTCOMES = ["answered", "failed"] as const;
const MODEL_STATES = ["off", "idle", "loading", "ready", "failing", "unavailable"] as const;

/** Adds the service's metrics to a registry. */
export function measureService(registry: Registry): ServiceMeasures {
  const { counter, histogram } = openSeries(registry);
  const requests = counter(
    "kbsync_service_requests_total",
    "Finished requests, by operation and HTTP status (none: the client disconnected before the answer).",
    "operation",
    "status",
  );
  const requestSeconds = histogram(
    "kbsync_service_request_duration_seconds",
    "Duration from a request's headers to the end of its answer.",
    WORK_SECONDS,
    "operation",
  );
  const searchSeconds = histogram(
    "kbsync_service_search_duration_seconds",
    "Duration of searches, by tier.",
    SEARCH_SECONDS,
    "tier",
  );
  const stageSeconds = histogram(
    "kbsync_service_ingest_stage_duration_seconds",
    "Duration of the stages of ingestion, waits included.",
    WORK_SECONDS,
    "stage",
  );
  const chunks = counter("kbsync_service_chunks_total", "Chunks of the texts that were stored.");
  const tokens = counter(
    "kbsync_service_model_tokens_total",
    "Tokens of models at an endpoint, as it counts them: those that it read (input) and wrote (output).",
    "model",
    "kind",
  );
  const questionsEnded = counter(
    "kbsync_service_questions_total",
    "Finished questions with an answer by webhook: answered or failed.",
    "outcome",
  );
  // Initialised to 0, so that the first failure is an increase.
  for (const outcome of OUTCOMES) questionsEnded.inc({ outcome }, 0);

  return {
    request: (operation, status, seconds) => {
      requests.inc({ operation, status: status === undefined ? "none" : String(status) });
      requestSeconds.observe({ operation }, seconds);
    },
    search: (tier, seconds) => searchSeconds.observe({ tier }, seconds),
    stage: (stage, seconds) => stageSeconds.observe({ stage }, seconds),
    chunks: (count) => chunks.inc(count),
    tokens: (model, kind, count) => tokens.inc({ model, kind }, count),
    question: (outcome) => questionsEnded.inc({ outcome }),
    ...measureState(registry),
  };
}

/** Measures the service's state and queues. */
function measureState(registry: Registry): Pick<ServiceMeasures, "set" | "forget"> {
  const { gauge } = openSeries(registry);
  const state = gauge("kbsync_service_state", "1 for the state of the service, 0 for the others.", "state");
  const modelState = gauge(
    "kbsync_service_model_state",
    "1 for the state of a model, 0 for the others.",
    "model",
    "state",
  );
  const underWay = gauge("kbsync_service_requests_under_way", "Requests without an answer yet.");
  const jobs = gauge(
    "kbsync_service_queue_documents",
    "Documents that wait for ingestion after their answer.",
  );
  const oldest = gauge("kbsync_service_queue_oldest_seconds", "Age of the oldest waiting document.");
  const overdue = gauge(
    "kbsync_service_queue_overdue",
    "Documents that have waited for more than ten minutes since they were due, or for a reader or a model.",
  );
  const questions = gauge(
    "kbsync_service_queue_questions",
    "Questions that wait for their answer by webhook.",
  );
  const oldestQuestion = gauge(
    "kbsync_service_queue_questions_oldest_seconds",
    "Age of the oldest waiting question.",
  );
  const messages = gauge(
    "kbsync_service_webhook_messages",
    "Webhook messages: waiting to be sent or retried, and given up in the last 30 days (a day without success, 410, or a disabled endpoint).",
    "state",
  );
  const failed = gauge(
    "kbsync_service_failed_resources",
    "Resources whose last text failed to be ingested after the answer.",
  );

  return {
    set: (figures) => {
      setOneOf(state, {}, STATES, figures.state);
      for (const [model, now] of Object.entries(figures.models))
        setOneOf(modelState, { model }, MODEL_STATES, now);
      underWay.set(figures.requestsInFlight);
      jobs.set(figures.jobsWaiting);
      oldest.set(figures.oldestJobSeconds);
      overdue.set(figures.jobsOverdue);
      failed.set(figures.resourcesFailed);
      questions.set(figures.questionsWaiting);
      oldestQuestion.set(figures.oldestQuestionSeconds);
      messages.set({ state: "waiting" }, figures.messages.waiting);
      messages.set({ state: "failed" }, figures.messages.failed);
    },
    forget: () => {
      for (const each of [underWay, jobs, oldest, overdue, failed, questions, oldestQuestion]) each.remove();
      for (const each of [state, modelState, messages]) each.reset();
    },
  };
}
