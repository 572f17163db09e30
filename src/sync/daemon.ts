import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AuditReport } from "../wire/daemon-audit.ts";
import { openOperations, type Operations } from "./daemon/operations.ts";
import type { DaemonOptions } from "./daemon/options.ts";
import type { AdoptReport } from "./adopt/adopt-source.ts";
import type { AuditOptions } from "./audit/audit.ts";
import { openDaemonAudits, type DaemonAudits, whileServiceAnswers } from "./daemon/audits.ts";
import type { AuditSchedule } from "./audit/schedule.ts";
import { type Notices, startNotices } from "./daemon/notices.ts";
import { openParts, type Parts } from "./daemon/parts.ts";
import { previewSources } from "./daemon/preview.ts";
import { openDaemonSources, type DaemonSources } from "./daemon/sources.ts";
import { openStatusReporter, type DaemonFigures, type DaemonStatus, figuresOf } from "./daemon/status.ts";
import { waitFor, type WaitEnd, type WaitOptions } from "./daemon/wait.ts";
import { watchSources, type Watching } from "./daemon/watching.ts";
import { unusableName, copyLedger, renameUnusable } from "./ledger/unusable.ts";
import { ledgerFile } from "./ledger/ledger.ts";
import type { PlannedAction } from "./operator/preview.ts";
import { type DaemonPulse, pulseOf } from "./daemon/pulse.ts";
import { adoptSources } from "./daemon/adoption.ts";

export type { DaemonOptions, World } from "./daemon/options.ts";
export type { DaemonStatus } from "./daemon/status.ts";

/** The result of a single pass. */
export interface PassResult {
  readonly planned: readonly PlannedAction[] | undefined;
  readonly status: DaemonStatus;
}

/** A daemon on a state folder, which is locked until it is closed. Call either `syncOnce` or `run`, and only once. */
export interface Daemon extends Operations {
  /**
   * Brings all sources into agreement and returns when nothing is left to do. With `dryRun` nothing is sent or written;
   * `planned` lists what would be. Throws `service_unreachable` or `key_refused`, and the signal's reason.
   */
  syncOnce(options?: { readonly dryRun?: boolean; readonly signal?: AbortSignal }): Promise<PassResult>;
  /** Keeps all sources in agreement until the signal aborts. Requests in flight then get some time to end. */
  run(options: { readonly signal: AbortSignal }): Promise<void>;
  /**
   * Cheap enough for a progress bar: during work the sources are reported as of a moment ago, and after the ledger has
   * become unreadable, as of the last report.
   */
  status(): DaemonStatus;
  /** For metrics: the status and other measurements. */
  figures(): DaemonFigures;
  /** Cheaper than `status`: distinguishes a daemon that works or rests from one that hangs. */
  pulse(): DaemonPulse;
  /** Resolves when `status().idle`. */
  whenIdle(signal?: AbortSignal): Promise<void>;
  /**
   * Resolves when the service has acknowledged everything, or a file or folder, as it is on disk at the call; or when
   * something prevents that which waiting does not remove. Throws `outside_sources` and the signal's reason.
   */
  wait(options: WaitOptions): Promise<WaitEnd>;
  /**
   * Compares the ledger with the service's list. Repairs are done when it returns. In a daemon that is not running and
   * makes no pass, repairing ends with a pass, which also brings over whatever else has changed. Throws `list_refused`,
   * what `syncOnce` throws, and `service_unreachable` or `key_refused` soon after the service went away.
   */
  audit(options?: AuditOptions): Promise<AuditReport>;
  /**
   * Assigns to files the resources that the service has of them, for a ledger that is new or old; see `adoptSource`.
   * For a daemon that is not running and makes no pass.
   */
  adopt(options?: { readonly signal?: AbortSignal }): Promise<readonly AdoptReport[]>;
  /** Ends it, flushes and closes the ledger, releases the state folder. */
  close(): Promise<void>;
}

/**
 * Maximum number of checks of doubts in a pass. One more request usually shows which of two resources stays; the rest is left
 * to the next pass.
 */
const DOUBT_ROUNDS = 3;
/** How long a single pass waits for a service that does not answer. */
const PATIENCE_MS = 30_000;

/** Opens a daemon. Throws `state_locked`, `state_unusable` and what `openLedger` throws. */
export function openDaemon(options: DaemonOptions): Daemon {
  const parts = openParts(options);
  const { context, lifecycle } = parts;
  const statusReporter = openStatusReporter(parts, (): DaemonSources => sources);
  const changedSoon = (): void => {
    statusReporter.persistSoon();
    notices?.changed();
    lifecycle.changed();
    options.onChange?.();
  };
  const sources = openDaemonSources(parts, changedSoon, (source) => audits.check(source));
  const audits: DaemonAudits = openDaemonAudits(parts, () => sources.all());
  let closing: Promise<void> | undefined;
  let notices: Notices | undefined;

  const whenIdle = (signal?: AbortSignal): Promise<void> =>
    lifecycle.until(
      () => rests(parts, sources) && (sources.all().length > 0 || options.sources.length === 0),
      signal,
    );
  const close = (): Promise<void> => (closing ??= closeDaemon(parts, sources, statusReporter));

  const passOnce = (signal: AbortSignal | undefined): Promise<void> =>
    runPass(parts, sources, audits, whenIdle, signal);

  const daemon: Daemon = {
    status: () => statusReporter.status(),
    figures: () => figuresOf(parts, sources, () => statusReporter.status()),
    pulse: () => pulseOf(parts, sources),
    whenIdle,
    wait: (waiting) => waitFor(parts, sources, waiting),
    ...openOperations(parts, sources),
    close,
    audit: async (asked = {}) => {
      const isAlone = sources.all().length === 0;
      if (isAlone) {
        parts.setPatience(options.patienceMs ?? PATIENCE_MS);
        sources.open(true);
      }
      return whileServiceAnswers(parts, asked.signal ?? context.signal, async (signal) => {
        const report = await audits.audit({ ...asked, signal });
        if (asked.repair !== true) return report;
        if (isAlone) await passOnce(signal);
        else await whenIdle(signal);
        return audits.settled(report);
      });
    },
    adopt: async ({ signal = context.signal } = {}) => {
      parts.setPatience(options.patienceMs ?? PATIENCE_MS);
      return await adoptSources(parts, sources, signal);
    },
    syncOnce: async ({ dryRun = false, signal } = {}) => {
      parts.setPatience(options.patienceMs ?? PATIENCE_MS);
      if (dryRun) {
        const preview = await previewSources(parts, sources, signal);
        return { planned: preview.planned, status: { ...daemon.status(), sources: preview.sources } };
      }
      sources.open(true);
      await passOnce(signal);
      return { planned: undefined, status: daemon.status() };
    },
    run: async ({ signal }) => {
      let watching: Watching | undefined;
      let auditing: AuditSchedule | undefined;
      let rechecking: { stop(): void } | undefined;
      try {
        sources.open(false);
        notices = startNotices(parts, sources);
        watching = await watchSources(parts, sources, changedSoon);
        sources.start();
        // A failure of this request ends the daemon by itself.
        context.capabilities.askAgain(context.signal).catch(() => undefined);
        auditing = audits.schedule(() => sources.isIdle());
        rechecking = audits.rechecks.schedule();
        // The error that ends the daemon is thrown below, after everything is closed.
        await lifecycle
          .until(() => signal.aborted || lifecycle.isEnding() || lifecycle.fatal() !== undefined, signal)
          .catch(() => undefined);
      } finally {
        watching?.stop();
        auditing?.stop();
        rechecking?.stop();
        notices?.stop();
        await close();
      }
      const fatal = lifecycle.fatal();
      if (fatal !== undefined) throw fatal;
    },
  };
  return daemon;
}

/** Uncommitted notes may bring more work: a replaced resource is deleted once its successor is recorded. */
function rests({ ledger }: Parts, sources: DaemonSources): boolean {
  if (!sources.isIdle()) return false;
  ledger.flush();
  return sources.isIdle();
}

async function closeDaemon(
  parts: Parts,
  sources: DaemonSources,
  statusReporter: ReturnType<typeof openStatusReporter>,
): Promise<void> {
  parts.lifecycle.end();
  statusReporter.stop();
  const stopped = sources.stop();
  await parts.close([stopped, ...[...sources.watches.values()].map((watch) => watch.close())], () => {
    statusReporter.persist();
    statusReporter.status();
  });
}

/** Checks every source once, and what its pass left in doubt. Resolves when nothing is in flight. */
async function runPass(
  { context, ledger }: Parts,
  sources: DaemonSources,
  audits: DaemonAudits,
  whenIdle: Daemon["whenIdle"],
  signal: AbortSignal | undefined,
): Promise<void> {
  await context.capabilities.askAgain(signal ?? context.signal);
  for (const source of sources.all()) source.hint(undefined);
  sources.start();
  await whenIdle(signal);
  for (let rounds = 0, isOpen = true; isOpen && rounds < DOUBT_ROUNDS; rounds += 1) {
    isOpen = false;
    for (const source of sources.all()) if (!source.isPaused() && (await source.checkDoubts())) isOpen = true;
    await whenIdle(signal);
  }
  await audits.rechecks.check();
  await whenIdle(signal);
  ledger.flush();
}

/** The result of rebuilding a ledger. */
export interface RecoverReport {
  /** Where the former ledger was moved; null if it was usable, or there was none. */
  readonly setAside: string | null;
  readonly sources: readonly AdoptReport[];
  /** The requests of the next sync. */
  readonly planned: readonly PlannedAction[];
}

export interface RecoverOptions {
  /** Works on a copy and changes nothing. */
  readonly dryRun?: boolean;
  readonly signal?: AbortSignal | undefined;
  readonly nowMs?: () => number;
}

/**
 * Rebuilds the ledger of a state folder from what the service has: one that is lost, damaged, from an old backup or
 * from before the first release. A ledger that cannot be used is renamed. Files get the resources that are theirs.
 * Nothing is requested but lists, and downloads of uploaded files whose bytes must decide. The next sync sends what
 * differs. May be interrupted at any point and repeated. Throws `state_locked` while a daemon works there,
 * `list_refused`, and what `openDaemon` throws.
 */
export async function recoverLedger(
  options: DaemonOptions,
  { dryRun = false, signal, nowMs = () => Date.now() }: RecoverOptions = {},
): Promise<RecoverReport> {
  if (!dryRun) {
    const setAside = existsSync(options.stateDir) ? renameUnusable(options.stateDir, nowMs()) : undefined;
    return { setAside: setAside ?? null, ...(await adoptAll(options, signal)) };
  }
  const copy = mkdtempSync(join(tmpdir(), "kbsync-recover-"));
  try {
    const isUnusable = copyLedger(options.stateDir, copy);
    const came = await adoptAll({ ...options, stateDir: copy }, signal);
    return { setAside: isUnusable ? unusableName(ledgerFile(options.stateDir), nowMs()) : null, ...came };
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

async function adoptAll(
  options: DaemonOptions,
  signal: AbortSignal | undefined,
): Promise<Pick<RecoverReport, "sources" | "planned">> {
  const daemon = openDaemon(options);
  try {
    const sources = await daemon.adopt(signal === undefined ? {} : { signal });
    const { planned } = await daemon.syncOnce({ dryRun: true, ...(signal !== undefined && { signal }) });
    return { sources, planned: planned ?? [] };
  } finally {
    await daemon.close();
  }
}
