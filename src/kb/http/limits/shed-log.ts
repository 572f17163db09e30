import type { Logger } from "pino";
import type { RefusalCode } from "../../resources/refusal.ts";

/** Refusals that one cause repeats thousands of times without any defect: they are counted, and logged without stacks. */
const SHED: ReadonlySet<string> = new Set<RefusalCode>([
  "disk_full",
  "files_unavailable",
  "model_busy",
  "overloaded",
  "starting",
  "store_busy",
]);
/** Minimum interval between log lines of one code. */
const SHED_EVERY_MS = 60_000;

/** Whether a refusal with this code is counted instead of logged each time. */
export function isShed(code: string): boolean {
  return SHED.has(code);
}

/** Logs refusals that load causes, with the number since the last line of the same code. */
export type ShedLog = (code: string, message: string) => void;

/** Opens the log of shed requests. `steadyMs` is a clock that is never set back. */
export function openShedLog(log: Pick<Logger, "warn">, steadyMs: () => number): ShedLog {
  const codes = new Map<string, { count: number; loggedMs: number }>();
  return (code, message) => {
    const shed = codes.get(code) ?? { count: 0, loggedMs: Number.NEGATIVE_INFINITY };
    codes.set(code, shed);
    shed.count += 1;
    const nowMs = steadyMs();
    if (nowMs - shed.loggedMs < SHED_EVERY_MS) return;
    log.warn({ code, requests: shed.count }, `requests are refused: ${message}`);
    shed.count = 0;
    shed.loggedMs = nowMs;
  };
}
