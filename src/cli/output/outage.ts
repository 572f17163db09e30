import type { PaceState } from "../../wire/daemon-status.ts";
import { outageWords } from "../../sync/send/remote/pacer.ts";
import { localTime } from "./progress.ts";
import type { Context } from "./context.ts";

/** Poll interval of the service's state, in milliseconds. */
const POLL_EVERY_MS = 200;
/** Shortest outage that is reported, in milliseconds. */
const REPORT_AFTER_MS = 1000;

/**
 * Reports once on standard error that the service does not answer, with the time until which the daemon retries. Returns a function
 * that stops reporting.
 */
export function reportOutages(context: Context, state: () => PaceState): () => void {
  let sinceMs: number | undefined;
  let isReported = false;
  const timer = setInterval(() => {
    const now = state();
    if (now.kind !== "waiting") {
      sinceMs = undefined;
      isReported = false;
      return;
    }
    sinceMs ??= context.nowMs();
    if (isReported || context.nowMs() - sinceMs < REPORT_AFTER_MS) return;
    isReported = true;
    context.stderr.write(outageLine(now));
  }, POLL_EVERY_MS);
  return () => clearInterval(timer);
}

/** `the service does not answer: connect ECONNREFUSED …; trying again until 17:12:05`. */
function outageLine({ reason, hint, givesUpMs }: Extract<PaceState, { kind: "waiting" }>): string {
  const until = givesUpMs === undefined ? "" : ` until ${localTime(givesUpMs).slice(-8)}`;
  return `kbsync: ${outageWords({ reason, hint })}; trying again${until}\n`;
}
