import { mkdirSync } from "node:fs";
import { lockFolder, stateUnusable } from "../lib/folder-lock.ts";
import { steadyClock } from "./clock.ts";
import { openTurns } from "../lib/turns.ts";
import type { SyncConfig } from "../config/schema.ts";
import type { Tier } from "../wire/primitives.ts";
import type { ActionContext } from "./actions/context.ts";
import { openCollections } from "./actions/collections.ts";
import type { Activity } from "./ledger/activity.ts";
import { ledgerFile, openLedger } from "./ledger/ledger.ts";
import { ledgerFailure } from "./ledger/open.ts";
import { freshRow, type SourceRow } from "./ledger/sources.ts";
import { previewOf, type PlannedAction } from "./preview.ts";
import { openPacer, type PaceState } from "./remote/pacer.ts";
import { connectPool, openRemote, type Connect, type ServiceAddress } from "./remote/remote.ts";
import { startRescans, type Rescans } from "./rescans.ts";
import { openRules, type WatchedSource } from "./rules.ts";
import { openSource, type SourceSync } from "./source.ts";
import {
  statusOf,
  type SkippedFile,
  type SourceStatus,
  type StatusSource,
  type TroubledFile,
} from "./status.ts";
import { watchSource, type Watch } from "./watch.ts";
import { openWork, type Progress } from "./work.ts";

/** What a daemon needs. */
export interface DaemonOptions {
  /** Folder of the ledger; made if missing, for this user alone. */
  readonly stateDir: string;
  readonly service: ServiceAddress & {
    /** Names the service in the ledger. Default: dbUrl. Give a constant where the address changes (embedded). */
    readonly identity?: string;
  };
  readonly sources: readonly WatchedSource[];
  readonly sync: SyncConfig;
  /** Each action that was done or given up for now. */
  readonly onActivity?: (activity: DaemonActivity) => void;
  /** Something went wrong that the daemon lives with: a folder that cannot be watched, a service that does not answer. */
  readonly onWarning?: (error: Error) => void;
  /** Give up when the service has not answered for so long, with `service_unreachable`. Default: 30 s in `syncOnce`, never in `run`. */
  readonly patienceMs?: number;
  /** Told before and after each effect; one that throws stands for a crash. For tests. */
  readonly step?: (name: string) => void;
  /** What a simulation puts in place of the world. */
  readonly world?: World;
}

/** What the daemon takes from outside beside disk and timers; each has one implementation but for the simulation's. */
export interface World {
  readonly watch: typeof watchSource;
  /** Opens the connections to one host. */
  readonly connect: Connect;
  /** In [0, 1). */
  readonly random: () => number;
}

const REAL_WORLD: World = { watch: watchSource, connect: connectPool, random: Math.random };

/** An activity with the source's folder in place of its number. */
export type DaemonActivity = Omit<Activity, "source"> & { readonly source: string };

/** Where the daemon stands, as of now. */
export interface DaemonStatus {
  readonly service: PaceState;
  readonly sources: readonly SourceStatus[];
  readonly progress: Progress;
  /** Whether everything that was noticed is done. */
  readonly idle: boolean;
}

/** What one pass came to. */
export interface PassResult {
  readonly planned: readonly PlannedAction[] | undefined;
  readonly status: DaemonStatus;
}

/** A daemon on a state folder, which is locked until it is closed. Call either `syncOnce` or `run`, and that once. */
export interface Daemon {
  /**
   * Brings all sources into agreement and returns when nothing is left to do. With `dryRun` nothing is sent and nothing
   * written; `planned` says what would be. Throws `service_unreachable` or `key_refused`, and the signal's reason.
   */
  syncOnce(options?: { readonly dryRun?: boolean; readonly signal?: AbortSignal }): Promise<PassResult>;
  /** Keeps all sources in agreement until the signal aborts; then requests under way get some time to end. */
  run(options: { readonly signal: AbortSignal }): Promise<void>;
  /** Cheap enough for a progress bar. When the ledger can no longer be read, the sources are as they were last told. */
  status(): DaemonStatus;
  /** Files that are not in agreement, with the reason. */
  troubled(limit: number): readonly TroubledFile[];
  /** Files that are left out, with the reason. */
  skipped(limit: number): readonly SkippedFile[];
  /** Resolves when `status().idle`. */
  whenIdle(signal?: AbortSignal): Promise<void>;
  /** Has every source looked at as a whole. */
  rescan(): void;
  /** A person agrees to the deletes that are held. `path` is a source's folder; default all. */
  approve(path?: string): void;
  /** Ends it, flushes and closes the ledger, releases the state folder. */
  close(): Promise<void>;
}

const PATIENCE_MS = 30_000;
/** How long requests under way may take when the daemon stops; what is cut off then is settled at the next start. */
const STOP_MS = 10_000;
/** Progress is written to the ledger, for other processes to read, this often. */
const PERSIST_MS = 500;

/** Opens a daemon. Throws `state_locked`, `state_unusable`, `ledger_newer`, `ledger_damaged`, `ledger_other_service`. */
export function openDaemon(options: DaemonOptions): Daemon {
  const { stateDir, service, sync, sources: watched } = options;
  try {
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw stateUnusable(stateDir, error);
  }
  const lock = lockFolder(stateDir, "daemon");
  const now = steadyClock();
  const step = options.step ?? (() => undefined);
  const world = options.world ?? REAL_WORLD;
  const warn = options.onWarning ?? (() => undefined);
  const hard = new AbortController();
  let fatal: Error | undefined;
  let ledgerFailed = false;
  let ledgerClosed = false;
  let closing: Promise<void> | undefined;
  const changed = new Set<() => void>();

  const notify = (): void => {
    for (const listener of changed) listener();
  };
  const fail = (error: unknown): void => {
    if (closing !== undefined || fatal !== undefined) return;
    fatal = error instanceof Error ? error : new Error(String(error));
    pacer.close(fatal);
    notify();
  };

  let ledger: ReturnType<typeof openLedger>;
  try {
    ledger = openLedger(stateDir, service.identity ?? service.dbUrl, {
      step,
      onFailure: (error) => {
        ledgerFailed = true;
        fail(error);
      },
    });
  } catch (error) {
    lock.release();
    throw error;
  }
  let patienceMs = options.patienceMs ?? Infinity;
  const pacer = openPacer({
    widthMax: sync.concurrency,
    patienceMs: () => patienceMs,
    now,
    random: world.random,
    onWidth: (width) => work.setWidth(width),
    onTrouble: warn,
  });
  const remote = openRemote({
    address: service,
    pacer,
    connections: sync.concurrency + 2,
    timeoutMs: sync.requestTimeoutMs,
    now,
    step,
    connect: world.connect,
  });
  const configured = new Map<Tier, string>(
    watched.flatMap(({ collection, collectionId }) =>
      collectionId === undefined ? [] : [[collection, collectionId] as const],
    ),
  );
  const paths = new Map<number, string>();
  const context: ActionContext = {
    ledger,
    remote,
    pacer,
    collections: openCollections(ledger, remote, configured),
    twins: openTurns(),
    now,
    random: world.random,
    signal: hard.signal,
    report: (activity) => {
      const { source, ...facts } = { ...activity, atMs: Date.now() };
      ledger.note(() => ledger.activity.add({ ...facts, source }));
      options.onActivity?.({ ...facts, source: paths.get(source) ?? "" });
    },
  };

  const work = openWork({ ledger, width: pacer.width(), onError: fail, isBroken: () => fatal !== undefined });

  let sources: SourceSync[] = [];
  const watches = new Map<number, Watch>();
  const openRow = (row: SourceRow, source: WatchedSource, once: boolean): SourceSync => {
    paths.set(row.id, row.path);
    return openSource({
      row,
      rules: openRules(source),
      sync,
      context,
      queue: work,
      once,
      onUnhinted: () => watches.get(row.id)?.renew(),
      onWarning: warn,
      onChange: changedSoon,
    });
  };
  const openRows = (): { readonly source: WatchedSource; readonly row: SourceRow }[] => {
    try {
      const rows = watched.map((source) => ({
        source,
        row: ledger.sources.open(source.absolutePath, source.ownerId, source.collection),
      }));
      ledger.sources.keepActive(rows.map(({ row }) => row.id));
      return rows;
    } catch (error) {
      throw ledgerFailure(error, ledgerFile(stateDir));
    }
  };
  const openSources = (once: boolean): void => {
    const rows = openRows();
    sources = rows.map(({ source, row }) => openRow(row, source, once));
  };
  /** Plans all sources on rows that are only looked up; those of the daemon stay closed, so nothing of them is written. */
  const preview = async (signal: AbortSignal | undefined): Promise<PassResult> => {
    const planned: PlannedAction[] = [];
    const looked: StatusSource[] = [];
    for (const [index, source] of watched.entries()) {
      const { absolutePath, ownerId, collection } = source;
      // No row of the ledger has a number below zero.
      const row =
        ledger.sources.peek(absolutePath, ownerId, collection) ??
        freshRow(-1 - index, absolutePath, ownerId, collection);
      const opened = openRow(row, source, true);
      planned.push(...(await previewOf(ledger, row, opened, sync, signal)));
      looked.push({ id: row.id, row, activity: () => opened.activity() });
    }
    const status = { ...daemon.status(), sources: statusOf(ledger, looked, () => undefined) };
    return { planned, status };
  };

  let persistTimer: NodeJS.Timeout | undefined;
  const persist = (): void => {
    clearTimeout(persistTimer);
    persistTimer = undefined;
    for (const source of sources) {
      const { backlog, backlogAgreed } = source.activity();
      const reason = closing === undefined ? (watches.get(source.id)?.degraded() ?? null) : null;
      ledger.note(() => {
        ledger.sources.setBacklog(source.id, backlog, backlogAgreed);
        ledger.sources.setDegraded(source.id, reason);
      });
    }
  };
  const changedSoon = (): void => {
    // What is left when the daemon stops is written by the stop itself.
    if (closing === undefined) persistTimer ??= setTimeout(persist, PERSIST_MS);
    if (isIdle()) notify();
  };
  const isIdle = (): boolean => sources.every((source) => source.isIdle());

  /** Resolves when idle; throws what went wrong, or the signal's reason. */
  const whenIdle = async (signal?: AbortSignal): Promise<void> => {
    while (!isIdle() || sources.length === 0) {
      if (fatal !== undefined) throw fatal;
      signal?.throwIfAborted();
      if (sources.length === 0 && watched.length === 0) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const proceed = (): void => resolve();
      changed.add(proceed);
      signal?.addEventListener("abort", proceed, { once: true });
      await promise;
      changed.delete(proceed);
      signal?.removeEventListener("abort", proceed);
    }
    if (fatal !== undefined) throw fatal;
  };

  /** What a read of the ledger gives; `otherwise` once it is closed or no longer to be read, which ends the daemon. */
  const readLedger = <T>(read: () => T, otherwise: T): T => {
    if (ledgerFailed || ledgerClosed) return otherwise;
    try {
      return read();
    } catch (error) {
      fail(ledgerFailure(error, ledgerFile(stateDir)));
      return otherwise;
    }
  };
  let lastStatus: SourceStatus[] = [];
  const sourcesStatus = (): SourceStatus[] => {
    lastStatus = readLedger(() => statusOf(ledger, sources, (id) => watches.get(id)?.degraded()), lastStatus);
    return lastStatus;
  };

  const startLoops = (): void => {
    for (const source of sources) source.run().catch(fail);
  };

  const close = async (): Promise<void> => {
    closing ??= (async () => {
      clearTimeout(persistTimer);
      for (const source of sources) source.stop();
      pacer.close(fatal ?? new Error("the daemon is stopping"));
      const cut = setTimeout(
        () => hard.abort(new Error("the daemon stopped")),
        fatal === undefined ? STOP_MS : 0,
      );
      await Promise.all([work.stop(), ...[...watches.values()].map((watch) => watch.close())]);
      clearTimeout(cut);
      await remote.close();
      try {
        if (!ledgerFailed) {
          persist();
          sourcesStatus();
        }
        ledgerClosed = true;
        if (ledgerFailed) ledger.abandon();
        else ledger.close();
      } finally {
        lock.release();
      }
    })();
    await closing;
  };

  const daemon: Daemon = {
    status: () => ({
      service: pacer.state(),
      sources: sourcesStatus(),
      progress: work.progress(),
      idle: sources.length > 0 && isIdle(),
    }),
    troubled: (limit) => readLedger(() => ledger.files.troubled(limit), []),
    skipped: (limit) => readLedger(() => ledger.files.skipped(limit), []),
    whenIdle,
    rescan: () => {
      for (const source of sources) source.hint(undefined);
    },
    approve: (path) => {
      ledger.flush();
      for (const source of sources) {
        if (path !== undefined && paths.get(source.id) !== path) continue;
        ledger.note(() => ledger.sources.approve(source.id));
        source.hint(undefined);
      }
    },
    close,
    syncOnce: async ({ dryRun = false, signal } = {}) => {
      patienceMs = options.patienceMs ?? PATIENCE_MS;
      if (dryRun) return preview(signal);
      openSources(true);
      for (const source of sources) source.hint(undefined);
      startLoops();
      await whenIdle(signal);
      for (const source of sources) await source.checkDoubts();
      await whenIdle(signal);
      ledger.flush();
      return { planned: undefined, status: daemon.status() };
    },
    run: async ({ signal }) => {
      const rescans = new Map<number, Rescans>();
      try {
        openSources(false);
        for (const source of sources) {
          // A first sync need not wait for the watches; what changes meanwhile is found by the scan after they are ready.
          if (ledger.files.isEmpty(source.id)) source.hint(undefined);
          const watchChanged = (): void => {
            rescans.get(source.id)?.choose();
            changedSoon();
          };
          const watch = await world.watch({
            root: source.rules.source.absolutePath,
            rules: source.rules,
            onDirty: (path) => source.hint(path),
            onError: (error) => {
              warn(error);
              watchChanged();
            },
            onReady: () => {
              source.hint(undefined);
              watchChanged();
            },
          });
          watches.set(source.id, watch);
          const timing = { periodMs: sync.rescanMinutes * 60_000, random: world.random };
          rescans.set(
            source.id,
            startRescans({ rescan: () => source.rescan(), degraded: () => watch.degraded(), ...timing }),
          );
        }
        startLoops();
        const { promise, resolve } = Promise.withResolvers<void>();
        const ended = (): void => {
          if (signal.aborted || fatal !== undefined || closing !== undefined) resolve();
        };
        changed.add(ended);
        signal.addEventListener("abort", ended, { once: true });
        ended();
        await promise;
        changed.delete(ended);
      } finally {
        for (const each of rescans.values()) each.stop();
        await close();
      }
      if (fatal !== undefined) throw fatal;
    },
  };
  return daemon;
}
