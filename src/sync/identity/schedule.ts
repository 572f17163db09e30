import type { AuditReport } from "../../wire/daemon-audit.ts";

/** Periodic audits while a daemon runs. */
export interface AuditSchedule {
  stop(): void;
}

export interface AuditScheduleOptions {
  /** Period; 0: never. */
  readonly periodMs: number;
  /** When the last one ended, according to this ledger; undefined: there was none. */
  readonly lastMs: number | undefined;
  readonly nowMs: () => number;
  /** In [0, 1). */
  readonly random: () => number;
  /** Reports whether the daemon has nothing else to do. */
  readonly isIdle: () => boolean;
  readonly audit: () => Promise<AuditReport>;
  readonly onDone: (report: AuditReport) => void;
  readonly onFailure: (error: unknown) => void;
}

/** A start brings enough work. The first audit, if one is due, comes this much later. */
const FIRST_MS = 10 * 60_000;
/** How soon a busy daemon is checked again. */
const BUSY_MS = 60_000;
/** Timers of Node.js end at 24.8 days, and a clock may be set, so the time is checked this often. */
const CHECK_MS = 3_600_000;
/**
 * Audits of several daemons are spread by up to this part of their period, so that they do not all find the service
 * busy.
 */
const JITTER = 0.1;

/**
 * Schedules audits. A list of the bare specification contains all texts, so audits are never more frequent than the
 * period, across restarts too, and wait until the daemon has nothing else to do.
 */
export function scheduleAudits(options: AuditScheduleOptions): AuditSchedule {
  const { periodMs, lastMs, nowMs, random, isIdle, audit, onDone, onFailure } = options;
  let timer: NodeJS.Timeout | undefined;
  let stopped = periodMs === 0;
  let dueMs = 0;

  const plan = (sinceMs: number | undefined, firstMs: number): void => {
    const jitter = 1 + JITTER * random();
    const next = sinceMs === undefined ? 0 : Math.min(sinceMs, nowMs()) + periodMs * jitter;
    dueMs = Math.max(next, nowMs() + Math.min(firstMs, periodMs) * jitter);
  };
  const arm = (delayMs: number): void => {
    if (!stopped) timer = setTimeout(check, Math.min(CHECK_MS, Math.max(0, delayMs)));
  };
  const check = (): void => {
    const restMs = dueMs - nowMs();
    if (restMs > 0) arm(restMs);
    else if (isIdle()) void begin();
    else arm(Math.min(BUSY_MS, periodMs));
  };
  const begin = async (): Promise<void> => {
    try {
      const report = await audit();
      if (!stopped) onDone(report);
    } catch (error) {
      if (!stopped) onFailure(error);
    }
    plan(nowMs(), 0);
    arm(dueMs - nowMs());
  };
  if (!stopped) {
    plan(lastMs, FIRST_MS);
    arm(dueMs - nowMs());
  }
  return {
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

/** Returns what to report to a person about an audit; undefined if nothing is worth reporting. */
export function auditWords({ sources, findings, unnamed, agrees }: AuditReport): string | undefined {
  if (agrees) return undefined;
  const named = (kinds: readonly string[]): number =>
    findings.filter(({ kind }) => kinds.includes(kind)).length;
  const missing = sources.reduce((sum, source) => sum + source.missing, 0);
  const altered = sources.reduce((sum, source) => sum + source.altered, 0);
  const parts = [
    [missing, "missing"],
    [altered, "altered"],
    [named(["twice"]), "there twice"],
    [named(["same"]), "equal to one of ours"],
    [named(["returned"]), "deleted before"],
    [unnamed, "more not named"],
  ] as const;
  const counts = parts.flatMap(([count, word]) => (count === 0 ? [] : [`${count} ${word}`]));
  return counts.length === 0 ? undefined : `the audit found resources that differ: ${counts.join(", ")}`;
}
