import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { ServiceFigures, ServiceObserver } from "../kb/observer.ts";
import { setOneOf } from "./one-of.ts";

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
  const registers = [registry];
  const requests = new Counter({
    name: "kbsync_service_requests_total",
    help: "Finished requests, by operation and HTTP status (none: the client disconnected before the answer).",
    labelNames: ["operation", "status"],
    registers,
  });
  const requestSeconds = new Histogram({
    name: "kbsync_service_request_duration_seconds",
    help: "Duration from a request's headers to the end of its answer.",
    labelNames: ["operation"],
    buckets: WORK_SECONDS,
    registers,
  });
  const searchSeconds = new Histogram({
    name: "kbsync_service_search_duration_seconds",
    help: "Duration of searches, by tier.",
    labelNames: ["tier"],
    buckets: SEARCH_SECONDS,
    registers,
  });
  const stageSeconds = new Histogram({
    name: "kbsync_service_ingest_stage_duration_seconds",
    help: "Duration of the stages of ingestion, waits included.",
    labelNames: ["stage"],
    buckets: WORK_SECONDS,
    registers,
  });
  const state = new Gauge({
    name: "kbsync_service_state",
    help: "1 for the state of the service, 0 for the others.",
    labelNames: ["state"],
    registers,
  });
  const modelState = new Gauge({
    name: "kbsync_service_model_state",
    help: "1 for the state of a model, 0 for the others.",
    labelNames: ["model", "state"],
    registers,
  });
  const plain = (name: string, help: string): Gauge => new Gauge({ name, help, registers });
  const underWay = plain("kbsync_service_requests_under_way", "Requests without an answer yet.");
  const jobs = plain(
    "kbsync_service_queue_documents",
    "Documents that wait for ingestion after their answer.",
  );
  const oldest = plain("kbsync_service_queue_oldest_seconds", "Age of the oldest waiting document.");
  const questions = plain(
    "kbsync_service_queue_questions",
    "Questions that wait for their answer by webhook.",
  );
  const oldestQuestion = plain(
    "kbsync_service_queue_questions_oldest_seconds",
    "Age of the oldest waiting question.",
  );
  const questionsEnded = new Counter({
    name: "kbsync_service_questions_total",
    help: "Finished questions with an answer by webhook: answered or failed.",
    labelNames: ["outcome"],
    registers,
  });
  // Initialised to 0, so that the first failure is an increase.
  for (const outcome of OUTCOMES) questionsEnded.inc({ outcome }, 0);
  const messages = new Gauge({
    name: "kbsync_service_webhook_messages",
    help: "Webhook messages: waiting to be sent or retried, and dead letters (a day without success, 410, or a disabled endpoint).",
    labelNames: ["state"],
    registers,
  });
  const failed = plain(
    "kbsync_service_failed_resources",
    "Resources whose last text failed to be ingested after the answer.",
  );

  return {
    request: (operation, status, seconds) => {
      requests.inc({ operation, status: status === undefined ? "none" : String(status) });
      requestSeconds.observe({ operation }, seconds);
    },
    search: (tier, seconds) => searchSeconds.observe({ tier }, seconds),
    stage: (stage, seconds) => stageSeconds.observe({ stage }, seconds),
    question: (outcome) => questionsEnded.inc({ outcome }),
    set: (figures) => {
      setOneOf(state, {}, STATES, figures.state);
      for (const [model, now] of Object.entries(figures.models))
        setOneOf(modelState, { model }, MODEL_STATES, now);
      underWay.set(figures.requestsUnderWay);
      jobs.set(figures.jobsWaiting);
      oldest.set(figures.oldestJobSeconds);
      failed.set(figures.resourcesFailed);
      questions.set(figures.questionsWaiting);
      oldestQuestion.set(figures.oldestQuestionSeconds);
      messages.set({ state: "waiting" }, figures.messages.waiting);
      messages.set({ state: "dead" }, figures.messages.dead);
    },
    forget: () => {
      for (const gauge of [underWay, jobs, oldest, failed, questions, oldestQuestion]) gauge.remove();
      for (const gauge of [state, modelState, messages]) gauge.reset();
    },
  };
}
