import { once } from "node:events";
import type { AuditReport, Finding } from "../../wire/daemon-audit.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { type AuditOptions, auditSources } from "../identity/audit.ts";
import type { SourceSync } from "./source/source.ts";
import { paceTrouble } from "../send/remote/pacer.ts";
import { type Chores, startChores } from "./chores.ts";
import type { Parts } from "./parts.ts";
import type { DaemonSources } from "./sources.ts";

/** The comparisons of a daemon with its service, and their schedule. */
export type DaemonAudits = ReturnType<typeof openDaemonAudits>;

/** Opens the audits of a daemon. */
export function openDaemonAudits(parts: Parts, sources: DaemonSources) {
  const { context, options, ledger, world, warn } = parts;
  const audit = (asked: AuditOptions = {}): Promise<AuditReport> =>
    auditSources(context, sources.all(), asked);
  const compareAgain = async (): Promise<void> => {
    for (const source of sources.all()) {
      const dueMs = source.contact.againMs();
      if (dueMs === undefined || dueMs > Date.now()) continue;
      if (source.isPaused() || source.contact.isClosed() || !source.isIdle()) continue;
      await source.contact.compare({ repair: true, signal: source.context.signal });
    }
    await sources.removals()?.again();
  };
  return {
    /** Compares all sources with the service's list. Throws `list_refused`. */
    audit,
    /** Compares what should be compared again because a list may have lagged, if the source rests. */
    compareAgain,
    /** Counts the findings of a report that remain after the repairs. */
    settled: (report: AuditReport): AuditReport => ({
      ...report,
      left: report.left + unsettled(parts, sources.all(), report),
    }),
    /** Starts audits, which repair what is safe, and the other chores. */
    startChores: (): Chores =>
      startChores({
        periodMs: options.sync.auditHours * 3_600_000,
        auditedMs: ledger.contacts.auditedMs(),
        random: world.random,
        isIdle: sources.isIdle,
        audit: async () => {
          const warning = warningOf(await audit({ repair: true }));
          ledger.note(() => ledger.contacts.setAuditedMs(Date.now()));
          if (warning !== undefined) warn(warning);
        },
        compareAgain,
        prune: async (signal) => context.trash?.prune(signal),
        onFailure: (error) => {
          if (!context.signal.aborted) warn(error instanceof Error ? error : new Error(String(error)));
        },
      }),
  };
}

/** How long a verify waits for a service that does not answer, and the interval at which that is looked at. */
const AWAY_MS_MAX = 10_000;
const AWAY_CHECK_MS = 1000;

/** Runs an audit for a person. Throws `service_unreachable` or `key_refused` after the service has been away for a while. */
export async function whileServiceAnswers<T>(
  { pacer }: Pick<Parts, "pacer">,
  signal: AbortSignal,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const away = new AbortController();
  let awayMs = 0;
  const timer = setInterval(() => {
    const service = pacer.state();
    const trouble = paceTrouble(service);
    awayMs = trouble === undefined ? 0 : awayMs + AWAY_CHECK_MS;
    if (trouble === undefined || awayMs < AWAY_MS_MAX) return;
    const code = service.kind === "key_refused" ? service.kind : "service_unreachable";
    const hint = "Nothing was decided. `kbsync status` shows when the daemon tries again.";
    away.abort(new KbsyncError(trouble, { code, retryable: true, hint }));
  }, AWAY_CHECK_MS);
  const stop = AbortSignal.any([signal, away.signal]);
  try {
    stop.throwIfAborted();
    const ended = once(stop, "abort").then(() => {
      throw stop.reason;
    });
    // An audit that waits for the end of another one notices no signal.
    return await Promise.race([run(stop), ended]);
  } finally {
    clearInterval(timer);
  }
}

/** Number of findings marked as repaired that are not: the service refused the file, or has not answered yet. */
function unsettled({ ledger }: Parts, sources: readonly SourceSync[], { findings }: AuditReport): number {
  ledger.flush();
  const ids = new Map(sources.map(({ id, rules }) => [rules.source.absolutePath, id]));
  return findings.filter(({ repaired, kind, source, path, docId }) => {
    if (!repaired) return false;
    if (kind !== "missing" && kind !== "altered") return ledger.files.ownsDoc(docId);
    const id = ids.get(source);
    const row = id === undefined ? undefined : ledger.files.living(id, path);
    return row !== undefined && row.state !== "agreed";
  }).length;
}

/** Warning for an audit with findings. */
function warningOf(report: AuditReport): KbsyncError | undefined {
  const words = auditWords(report);
  if (words === undefined) return undefined;
  const held = report.sources.some(({ lost }) => lost !== null);
  const left = report.findings.some(({ kind, repaired }) => kind !== "foreign" && !repaired);
  return new KbsyncError(words, {
    code: "drift_found",
    retryable: true,
    hint: held
      ? "nothing is sent for a source that lost most of them: see `kbsync status`, and `kbsync approve` to send them again"
      : left
        ? "`kbsync verify` lists them, `kbsync verify --repair` repairs the rest"
        : "they are being repaired; `kbsync log` lists them",
  });
}

/** Returns what to report to a person about an audit; undefined if nothing is worth reporting. */
export function auditWords({ sources, findings, unnamed }: AuditReport): string | undefined {
  const named = (kind: Finding["kind"]): number => findings.filter((each) => each.kind === kind).length;
  const missing = sources.reduce((sum, source) => sum + source.missing, 0);
  const altered = sources.reduce((sum, source) => sum + source.altered, 0);
  const parts = [
    [missing, "missing"],
    [altered, "altered"],
    [named("twice"), "there twice"],
    [named("returned"), "deleted before"],
    [unnamed, "more not named"],
  ] as const;
  const counts = parts.flatMap(([count, word]) => (count === 0 ? [] : [`${count} ${word}`]));
  return counts.length === 0 ? undefined : `the audit found resources that differ: ${counts.join(", ")}`;
}
