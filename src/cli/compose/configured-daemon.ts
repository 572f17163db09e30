import type { Logger } from "pino";
import type { Config } from "../../config/load.ts";
import { KbsyncError } from "../../lib/failure.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import { type Daemon, openDaemon } from "../../sync/daemon.ts";
import type { DaemonActivity } from "../../wire/daemon-files.ts";
import type { StateFolder } from "../state/state-folder.ts";
import type { ReachedService } from "./embedded-service.ts";

/** Listeners of a daemon, in addition to the log. */
export interface DaemonListeners {
  /** Returns the current log level of successful activities. */
  readonly levelOfDone: () => "debug" | "info";
  /** Called after each activity was logged. */
  readonly onActivity?: (activity: DaemonActivity) => void;
  readonly onChange?: () => void;
  readonly onUpgrade?: () => void;
  readonly metrics?: Metrics;
}

/**
 * Opens the daemon over the configuration's sources. Warnings and activities go to the log, successful activities at the
 * level that `levelOfDone` returns.
 */
export function openConfiguredDaemon(
  config: Config,
  state: StateFolder,
  service: ReachedService,
  log: Logger,
  { levelOfDone, metrics, onActivity, onChange, onUpgrade }: DaemonListeners,
): Daemon {
  const { apiUrl, dbUrl, resourcesUrl, filesAt, pauthkey, identity } = service;
  return openDaemon({
    stateDir: state.path,
    service: {
      apiUrl,
      dbUrl,
      ...(resourcesUrl !== undefined && { resourcesUrl }),
      ...(filesAt !== undefined && { filesAt }),
      pauthkey,
      identity,
      // Our own service lists every acknowledged resource at once; another one may not.
      ...(!("apiUrl" in config.service) && { listLagMs: 0 }),
    },
    sources: config.sources,
    sync: config.sync,
    onActivity: (activity) => {
      metrics?.daemon.activity(activity);
      logActivity(log, activity, levelOfDone());
      onActivity?.(activity);
    },
    ...(metrics && { observer: metrics.daemon }),
    onWarning: (error) => logWarning(log, error),
    onNotice: (words) => log.info(words),
    ...(onChange && { onChange }),
    ...(onUpgrade && { onUpgrade }),
  });
}

/** Logs an expected failure with its code and hint, any other with its stack. */
function logWarning(log: Logger, error: Error): void {
  if (error instanceof KbsyncError)
    log.warn({ code: error.code, subject: error.subject, hint: error.hint }, error.message);
  else log.warn({ err: error }, error.message);
}

const OUTCOME_WORDS = { refused: "was refused", parked: "is tried again later", skipped: "is left out" };

function logActivity(log: Logger, activity: DaemonActivity, levelOfDone: "debug" | "info"): void {
  const { atMs: _at, message, docId, ...rest } = activity;
  // Present even without an id, so that programs find the same keys in every line on a file.
  const facts = { ...rest, docId: docId ?? null };
  const { action, path, from } = activity;
  const words = from === undefined ? `${action} ${path}` : `${action} ${from} to ${path}`;
  // The cause of a discard was reported when it happened.
  if (activity.outcome === "done") log[action === "discard" ? "debug" : levelOfDone](facts, words);
  else {
    const level = activity.outcome === "skipped" ? "debug" : "warn";
    const subject = action === "delete" ? `the delete of ${path}` : path;
    log[level]({ ...facts, reason: message }, `${subject} ${OUTCOME_WORDS[activity.outcome]}: ${message}`);
  }
}
