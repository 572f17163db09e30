import type { AuditReport } from "../wire/daemon-audit.ts";
import { openOperations, type Operations } from "./daemon/operations.ts";
import type { DaemonOptions } from "./daemon/options.ts";
import type { AuditOptions } from "./identity/audit.ts";
import { openDaemonAudits, type DaemonAudits, whileServiceAnswers } from "./daemon/audits.ts";
import type { Chores } from "./daemon/chores.ts";
import { type Notices, startNotices } from "./daemon/notices.ts";
import { openParts, type Parts } from "./daemon/parts.ts";
import { openDaemonSources, type DaemonSources } from "./daemon/sources.ts";
import {
  openStatusReporter,
  type DaemonFigures,
  type DaemonPulse,
  type DaemonStatus,
  figuresOf,
  pulseOf,
} from "./daemon/status.ts";
import { waitFor, type WaitEnd, type WaitOptions } from "./daemon/wait.ts";
import { watchSources, type Watching } from "./daemon/watching.ts";
import { previewOf, removalsOf, type PlannedAction } from "./operate/preview.ts";
import { freshRow, type SourceRow } from "./ledger/sources/rows.ts";
import { movedSources } from "./daemon/source/moved-sources.ts";
import { storedStatus } from "./operate/status.ts";

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
  /** Ends it, flushes and closes the ledger, releases the state folder. */
  close(): Promise<void>;
}

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
  const sources = openDaemonSources(parts, changedSoon);
  const audits = openDaemonAudits(parts, sources);
  let closing: Promise<void> | undefined;
  let notices: Notices | undefined;
  let chores: Chores | undefined;

  const whenIdle = (signal?: AbortSignal): Promise<void> =>
    lifecycle.until(
      () => rests(parts, sources) && (sources.all().length > 0 || options.sources.length === 0),
      signal,
    );
  const close = (): Promise<void> => (closing ??= closeDaemon(parts, sources, statusReporter, chores));

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
    syncOnce: async ({ dryRun = false, signal } = {}) => {
      parts.setPatience(options.patienceMs ?? PATIENCE_MS);
      if (dryRun) {
        const { planned, rows } = await previewSources(parts, sources, signal);
        return { planned, status: { ...daemon.status(), sources: storedStatus(parts.ledger, rows) } };
      }
      sources.open(true);
      await passOnce(signal);
      return { planned: undefined, status: daemon.status() };
    },
    run: async ({ signal }) => {
      let watching: Watching | undefined;
      try {
        sources.open(false);
        notices = startNotices(parts, sources);
        watching = await watchSources(parts, sources, changedSoon);
        sources.start();
        // A failure of this request ends the daemon by itself.
        context.capabilities.askAgain(context.signal).catch(() => undefined);
        chores = audits.startChores();
        // The error that ends the daemon is thrown below, after everything is closed.
        await lifecycle
          .until(() => signal.aborted || lifecycle.isEnding() || lifecycle.fatal() !== undefined, signal)
          .catch(() => undefined);
      } finally {
        watching?.stop();
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
  chores: Chores | undefined,
): Promise<void> {
  parts.lifecycle.end();
  statusReporter.stop();
  sources.stop();
  const stopped = chores?.stop() ?? Promise.resolve();
  await parts.close([stopped, ...[...sources.watches.values()].map((watch) => watch.close())], () => {
    statusReporter.persist();
    statusReporter.status();
  });
}

/** Checks every source once. Resolves when nothing is in flight. */
async function runPass(
  { context, ledger, warn }: Parts,
  sources: DaemonSources,
  audits: DaemonAudits,
  whenIdle: Daemon["whenIdle"],
  signal: AbortSignal | undefined,
): Promise<void> {
  await context.capabilities.askAgain(signal ?? context.signal);
  for (const source of sources.all()) source.hint(undefined);
  sources.start();
  await whenIdle(signal);
  await audits.compareAgain();
  await whenIdle(signal);
  ledger.flush();
  // What cannot be removed now stays in the trash until the next pass.
  await context.trash?.prune(signal).catch((error: Error) => warn(error));
}

/** Plans all sources on rows that are only read. The daemon's sources stay closed, so nothing is written. Returns the rows too. */
async function previewSources(
  { options, ledger, context }: Parts,
  sources: DaemonSources,
  signal: AbortSignal | undefined,
): Promise<{ readonly planned: readonly PlannedAction[]; readonly rows: readonly SourceRow[] }> {
  const planned: PlannedAction[] = [];
  const rows: SourceRow[] = [];
  const moves = new Map(
    movedSources(ledger, options.sources).map(({ id, path }) => [path, { ...ledger.sources.get(id), path }]),
  );
  for (const [index, source] of options.sources.entries()) {
    const { absolutePath, ownerId, collection } = source;
    // Rows of the ledger have no negative numbers.
    const row =
      moves.get(absolutePath) ??
      ledger.sources.peek(absolutePath, ownerId, collection) ??
      freshRow(-1 - index, absolutePath, ownerId, collection);
    rows.push(row);
    const opened = sources.openOn(row, source, true);
    planned.push(...(await previewOf(ledger, row, opened, { signal, check: context.secretCheck })));
  }
  planned.push(...removalsOf(ledger, new Set(options.sources.map(({ absolutePath }) => absolutePath))));
  return { planned, rows };
}
