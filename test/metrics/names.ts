import { openMetrics } from "../../src/metrics/metrics.ts";

/** The program's own metrics by name, with the names of their labels. */
export const OWN_METRICS: Readonly<Record<string, readonly string[]>> = {
  kbsync_build_info: ["node", "version"],
  kbsync_metrics_failures_total: ["part"],
  kbsync_service_chunks_total: [],
  kbsync_service_failed_resources: [],
  kbsync_service_ingest_stage_duration_seconds: ["stage"],
  kbsync_service_model_state: ["model", "state"],
  kbsync_service_model_tokens_total: ["kind", "model"],
  kbsync_service_queue_documents: [],
  kbsync_service_queue_oldest_seconds: [],
  kbsync_service_queue_overdue: [],
  kbsync_service_queue_questions: [],
  kbsync_service_queue_questions_oldest_seconds: [],
  kbsync_service_questions_total: ["outcome"],
  kbsync_service_request_duration_seconds: ["operation"],
  kbsync_service_requests_total: ["operation", "status"],
  kbsync_service_requests_under_way: [],
  kbsync_service_search_duration_seconds: ["tier"],
  kbsync_service_state: ["state"],
  kbsync_service_webhook_messages: ["state"],
  kbsync_sync_activities_total: ["action", "outcome"],
  kbsync_sync_activity_duration_seconds: ["action"],
  kbsync_sync_concurrency: [],
  kbsync_sync_files: ["state"],
  kbsync_sync_files_per_second: [],
  kbsync_sync_last_rescan_timestamp_seconds: [],
  kbsync_sync_oldest_waiting_seconds: [],
  kbsync_sync_planned: [],
  kbsync_sync_queue_files: [],
  kbsync_sync_request_duration_seconds: ["request"],
  kbsync_sync_requests_total: ["outcome", "request"],
  kbsync_sync_rescan_duration_seconds: [],
  kbsync_sync_service_state: ["state"],
  kbsync_sync_sources: ["condition"],
  kbsync_sync_watched_sources: ["backend"],
};

/** A series of the text format. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Parses the text format of Prometheus. */
export function samplesOf(text: string): Sample[] {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const [, name = "", labels = "", value = ""] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key = "", word = ""]) => [key, word]);
      return { name, labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) };
    });
}

/** Returns the value of a series, or undefined. */
export function valueOf(
  text: string,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const isAsked = (sample: Sample): boolean =>
    sample.name === name && Object.entries(labels).every(([key, word]) => sample.labels[key] === word);
  return samplesOf(text).find(isAsked)?.value;
}

/** Returns the declared names, histograms without suffix. */
export function declaredNames(text: string): string[] {
  return [...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name = ""]) => name);
}

/** All metric names of the program, including those of the process. */
export async function allNames(): Promise<string[]> {
  const metrics = openMetrics("0.0.0");
  metrics.readService(() => Promise.reject(new Error("none here")));
  metrics.readDaemon(() => {
    throw new Error("none here");
  });
  return declaredNames((await metrics.text()).text);
}
