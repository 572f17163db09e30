import type { PaceState } from "../../wire/daemon.ts";
import { outageWords } from "../../sync/remote/pacer.ts";
import { localTime } from "./progress.ts";
import type { Context } from "./context.ts";

/** How often the service's state is looked at, in milliseconds. */
const LOOK_EVERY_MS = 200;
/** A service that asks to slow down for less than this is nothing a person need know. */
const TELL_AFTER_MS = 1000;

/**
 * Tells on standard error, once for each time, that the service does not answer and how long it is tried again; until
 * the function that it returns is called.
 */
export function reportOutages(context: Context, state: () => PaceState): () => void {
  let sinceMs: number | undefined;
  let told = false;
  const timer = setInterval(() => {
    const now = state();
    if (now.kind !== "waiting") {
      sinceMs = undefined;
      told = false;
      return;
    }
    sinceMs ??= context.nowMs();
    if (told || context.nowMs() - sinceMs < TELL_AFTER_MS) return;
    told = true;
    context.stderr.write(outageLine(now));
  }, LOOK_EVERY_MS);
  return () => clearInterval(timer);
}

/** `the service does not answer: connect ECONNREFUSED …; trying again until 17:12:05`. */
export function outageLine({ reason, hint, givesUpMs }: Extract<PaceState, { kind: "waiting" }>): string {
  const until = givesUpMs === undefined ? "" : ` until ${localTime(givesUpMs).slice(-8)}`;
  return `kbsync: ${outageWords({ reason, hint })}; trying again${until}\n`;
}
