import { mkdirSync } from "node:fs";
import type { DaemonActivity } from "../../wire/daemon.ts";
import { lockFolder, stateUnusable } from "../../lib/folder-lock.ts";
import { openTurns } from "../../lib/turns.ts";
import { steadyClock } from "../../lib/steady-clock.ts";
import type { Tier } from "../../wire/primitives.ts";
import type { ActionContext } from "../actions/context.ts";
import { openCollections } from "../actions/collections.ts";
import { openMailUploads, type MailUploads } from "../actions/mail-uploads.ts";
import { ledgerFile, openLedger, type Ledger } from "../ledger/ledger.ts";
import { isLedgerFailure, ledgerFailure } from "../ledger/open.ts";
import { openPacer, type Pacer } from "../remote/pacer.ts";
import { openRemote, type Remote } from "../remote/remote.ts";
import { TIMING } from "../plan/timing.ts";
import { openTrash } from "../trash/trash.ts";
import { openWork, type Work } from "../source/work.ts";
import { beginLife, type Life } from "./life.ts";
import { REAL_WORLD, type DaemonOptions, type World } from "./options.ts";

/** What a daemon is made of, beside its sources. */
export interface Parts {
  readonly options: DaemonOptions;
  readonly world: World;
  readonly warn: (error: Error) => void;
  readonly inform: (words: string) => void;
  readonly life: Life;
  readonly ledger: Ledger;
  readonly pacer: Pacer;
  readonly work: Work;
  readonly context: ActionContext;
  /** Folders of the sources by their number in the ledger. */
  readonly paths: Map<number, string>;
  /** By its signal whether a source's changes are kept back. */
  readonly held: WeakMap<AbortSignal, () => boolean>;
  /** Notified of every activity beside `onActivity`, as long as it is in the set. */
  readonly listeners: Set<(activity: DaemonActivity) => void>;
  /** How often something was done, however small: requests that ended, files read, steps of looks at the folders. */
  moves(): { readonly asked: number; readonly read: number; readonly scanned: number };
  /** Give up when the service has not answered for so long. */
  setPatience(ms: number): void;
  /** What a read of the ledger gives; `otherwise` once it is closed or no longer to be read, which ends the daemon. */
  read<T>(read: () => T, otherwise: T): T;
  /** Lets requests under way end, for some time, then closes everything; `last` is the last that reads and writes. */
  close(alsoClose: readonly Promise<void>[], last: () => void): Promise<void>;
}

/**
 * How long requests under way may take when the daemon stops; what is cut off then is settled at the next start. With
 * what comes after it a stop ends within 10 s.
 */
const STOP_MS = 8_000;

/** Locks the state folder and opens what a daemon is made of. Whatever is thrown, nothing stays open. */
export function openParts(options: DaemonOptions): Parts {
  const { stateDir } = options;
  try {
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw stateUnusable(stateDir, error);
  }
  const lock = lockFolder(stateDir, "daemon");
  let ledger: Ledger | undefined;
  try {
    const failure = { ledger: false };
    const life = beginLife((error) => {
      if (!isLedgerFailure(error)) return error instanceof Error ? error : new Error(String(error));
      // What it says can no longer be trusted, so nothing is written to it any more.
      failure.ledger = true;
      return ledgerFailure(error, ledgerFile(stateDir));
    });
    ledger = openLedger(stateDir, options.service.identity ?? options.service.dbUrl, {
      step: options.step ?? (() => undefined),
      // A dry run must leave no trace: opening the sources claims it.
      unclaimed: true,
      onFailure: (error) => {
        failure.ledger = true;
        life.fail(error);
      },
      listener: {
        ...(options.onUpgrade && { begins: options.onUpgrade }),
        ...(options.onNotice && { done: options.onNotice }),
      },
    });
    return assemble(options, life, ledger, failure, () => lock.release());
  } catch (error) {
    ledger?.abandon();
    lock.release();
    throw error;
  }
}

function assemble(
  options: DaemonOptions,
  life: Life,
  ledger: Ledger,
  failure: { readonly ledger: boolean },
  unlock: () => void,
): Parts {
  const { stateDir, service, sync, sources: watched } = options;
  const now = steadyClock();
  const timing = { ...TIMING, ...options.timing };
  const step = options.step ?? (() => undefined);
  const world = options.world ?? REAL_WORLD;
  const warn = options.onWarning ?? (() => undefined);
  const hard = new AbortController();
  const paths = new Map<number, string>();
  const held = new WeakMap<AbortSignal, () => boolean>();
  const listeners = new Set<(activity: DaemonActivity) => void>();
  let patienceMs = options.patienceMs ?? Infinity;
  let closed = false;
  const moves = { asked: 0, read: 0, scanned: 0 };

  const pacer = openPacer({
    widthMax: sync.concurrency,
    patienceMs: () => patienceMs,
    random: world.random,
    retryMs: timing.retryMs,
    onWidth: (width) => work.setWidth(width),
    onTrouble: warn,
  });
  life.onFatal((error) => pacer.close(error));
  const remote: Remote = openRemote({
    address: service,
    pacer,
    connections: sync.concurrency + 2,
    timeoutMs: sync.requestTimeoutMs,
    now,
    step,
    onRequest: options.observer?.request,
    onMoved: () => void (moves.asked += 1),
    onClock: (offsetMs) =>
      ledger.note(() => {
        ledger.drift.noteForgottenOffset(offsetMs);
        if (ledger.intents.clockOffset() === undefined) ledger.intents.setClockOffset(offsetMs);
      }),
    onReads: (mediaTypes) => mails.learn(mediaTypes),
    isHeld: (signal) => held.get(signal)?.() === true,
    connect: world.connect,
  });
  const mails: MailUploads = openMailUploads(ledger, remote, now);
  const configured = new Map<Tier, string>(
    watched.flatMap(({ collection, collectionId }) =>
      collectionId === undefined ? [] : [[collection, collectionId] as const],
    ),
  );
  const reader = world.openReader();
  const context: ActionContext = {
    ledger,
    remote,
    reader: {
      read: async (...asked) => {
        const read = await reader.read(...asked);
        moves.read += 1;
        return read;
      },
    },
    pacer,
    collections: openCollections(ledger, remote, configured),
    mails,
    twins: openTurns(),
    adoptions: openTurns(),
    peers: new Set(),
    following: new Set(),
    trash: openTrash({ stateDir, days: sync.trashDays, ledger, remote }),
    now,
    timing,
    random: world.random,
    signal: hard.signal,
    yieldSlot: (wait) => wait(() => 1),
    moved: () => void (moves.scanned += 1),
    report: (activity) => {
      const { source, ...facts } = { ...activity, atMs: Date.now() };
      ledger.note(() => ledger.activity.add({ ...facts, source }));
      work.reported({ ...facts, source });
      const told = { ...facts, source: paths.get(source) ?? "" };
      options.onActivity?.(told);
      for (const listener of listeners) listener(told);
    },
  };
  const work = openWork({
    ledger,
    width: pacer.width(),
    onError: (error) => life.fail(error),
    isBroken: () => life.fatal() !== undefined,
  });

  return {
    options,
    world,
    warn,
    inform: options.onNotice ?? (() => undefined),
    life,
    ledger,
    pacer,
    work,
    context,
    paths,
    held,
    listeners,
    moves: () => moves,
    setPatience: (ms) => (patienceMs = ms),
    read: (read, otherwise) => {
      if (failure.ledger || closed) return otherwise;
      try {
        return read();
      } catch (error) {
        life.fail(ledgerFailure(error, ledgerFile(stateDir)));
        return otherwise;
      }
    },
    close: async (alsoClose, last) => {
      const fatal = life.fatal();
      pacer.close(fatal ?? new Error("the daemon is stopping"));
      const cut = setTimeout(
        () => hard.abort(new Error("the daemon stopped")),
        fatal === undefined ? STOP_MS : 0,
      );
      await Promise.all([work.stop(), ...alsoClose]);
      clearTimeout(cut);
      await Promise.all([remote.close(), reader.close()]);
      try {
        if (!failure.ledger) last();
        closed = true;
        if (failure.ledger) ledger.abandon();
        else ledger.close();
      } finally {
        unlock();
      }
    },
  };
}
