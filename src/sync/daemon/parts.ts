import { mkdirSync } from "node:fs";
import type { DaemonActivity } from "../../wire/daemon-files.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { lockFolder, stateUnusable } from "../../lib/folder-lock.ts";
import { steadyClock } from "../../lib/steady-clock.ts";
import type { ActionContext } from "../send/context.ts";
import { openCapabilities, type Capabilities } from "../send/capabilities.ts";
import { openCollections } from "../send/collections.ts";
import { ledgerFile, openLedger, type Ledger } from "../ledger/ledger.ts";
import { type Installation, openInstallation } from "../identity/installation.ts";
import { isLedgerFailure, ledgerFailure } from "../ledger/database/open.ts";
import { openPacer, type Pacer } from "../send/remote/pacer.ts";
import { readDocument } from "../scan/read/read.ts";
import { checkSecrets } from "../scan/read/secret-check.ts";
import type { OnOddField } from "../send/remote/record.ts";
import { openRemote, type Remote } from "../send/remote/remote.ts";
import { TIMING } from "../plan/timing.ts";
import { openTrash } from "../ledger/trash/trash.ts";
import { openWork, type Work } from "./source/work.ts";
import { openLifecycle, type Lifecycle } from "./lifecycle.ts";
import { REAL_WORLD, type DaemonOptions, type World } from "./options.ts";

/** The parts of a daemon except its sources. */
export interface Parts {
  readonly options: DaemonOptions;
  readonly world: World;
  readonly warn: (error: Error) => void;
  readonly inform: (words: string) => void;
  readonly lifecycle: Lifecycle;
  readonly ledger: Ledger;
  readonly pacer: Pacer;
  readonly work: Work;
  readonly context: ActionContext;
  readonly installation: Installation;
  /** Folders of the sources, by their number in the ledger. */
  readonly paths: Map<number, string>;
  /** Whether a source's changes are suspended, by its signal. */
  readonly held: WeakMap<AbortSignal, () => boolean>;
  /** Listeners for activities, in addition to `onActivity`. */
  readonly listeners: Set<(activity: DaemonActivity) => void>;
  /** Counts of work of any size: requests that ended, steps of scans. */
  steps(): { readonly requests: number; readonly scans: number };
  /** Sets the time without an answer after which the daemon gives up. */
  setPatience(ms: number): void;
  /** Reads from the ledger. Returns `otherwise` once it is closed or unreadable; the latter ends the daemon. */
  read<T>(read: () => T, otherwise: T): T;
  /** Gives requests in flight some time to end, then closes everything. `last` is the final access to the ledger. */
  close(alsoClose: readonly Promise<void>[], last: () => void): Promise<void>;
}

/**
 * Time for requests in flight when the daemon stops; the next start settles those that are cut off. Including what follows, a
 * stop takes at most 10 s.
 */
const STOP_MS = 8_000;

/** Locks the state folder and opens the parts of a daemon. If it throws, nothing stays open. */
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
    const lifecycle = openLifecycle((error) => {
      if (!isLedgerFailure(error)) return error instanceof Error ? error : new Error(String(error));
      // The ledger is no longer reliable, so nothing more is written to it.
      failure.ledger = true;
      return ledgerFailure(error, ledgerFile(stateDir));
    });
    ledger = openLedger(stateDir, options.service.identity ?? options.service.dbUrl, {
      step: options.step ?? (() => undefined),
      // A dry run must leave no trace. Opening the sources claims the ledger.
      onFailure: (error) => {
        failure.ledger = true;
        lifecycle.fail(error);
      },
      listener: {
        ...(options.onUpgrade && { begins: options.onUpgrade }),
        ...(options.onNotice && { done: options.onNotice }),
      },
    });
    return assemble(options, lifecycle, ledger, failure, () => lock.release());
  } catch (error) {
    ledger?.abandon();
    lock.release();
    throw error;
  }
}

function assemble(
  options: DaemonOptions,
  lifecycle: Lifecycle,
  ledger: Ledger,
  failure: { readonly ledger: boolean },
  unlock: () => void,
): Parts {
  const { stateDir, sync } = options;
  const world = options.world ?? REAL_WORLD;
  const hard = new AbortController();
  const paths = new Map<number, string>();
  const held = new WeakMap<AbortSignal, () => boolean>();
  const listeners = new Set<(activity: DaemonActivity) => void>();
  let patienceMs = options.patienceMs ?? Infinity;
  let closed = false;
  const steps = { requests: 0, scans: 0 };

  const pacer = openPacer({
    widthMax: sync.concurrency,
    requestsPerMinute: sync.requestsPerMinute,
    patienceMs: () => patienceMs,
    random: world.random,
    retryMs: { ...TIMING, ...options.timing }.retryMs,
    onWidth: (width) => work.setWidth(width),
    onTrouble: options.onWarning ?? (() => undefined),
  });
  lifecycle.onFatal((reason) => pacer.close(reason));
  const context: ActionContext = {
    ...openService(options, ledger, pacer, steps, (signal) => held.get(signal)?.() === true),
    secretCheck: sync.blockSecrets === true ? checkSecrets : undefined,
    read: readDocument,
    signal: hard.signal,
    moved: () => void (steps.scans += 1),
    report: (activity) => {
      const { source, ...facts } = { ...activity, atMs: Date.now() };
      ledger.note(() => ledger.activity.add({ ...facts, source }));
      work.reported(facts);
      const named = { ...facts, source: paths.get(source) ?? "" };
      options.onActivity?.(named);
      for (const listener of listeners) listener(named);
    },
  };
  const work = openWork({
    ledger,
    width: pacer.width(),
    onError: (error) => lifecycle.fail(error),
    isBroken: () => lifecycle.fatal() !== undefined,
  });

  return {
    options,
    world,
    warn: options.onWarning ?? (() => undefined),
    inform: options.onNotice ?? (() => undefined),
    lifecycle,
    ledger,
    pacer,
    work,
    context,
    installation: openInstallation(stateDir, world.machineId()),
    paths,
    held,
    listeners,
    steps: () => steps,
    setPatience: (ms) => (patienceMs = ms),
    read: (read, otherwise) => {
      if (failure.ledger || closed) return otherwise;
      try {
        return read();
      } catch (error) {
        lifecycle.fail(ledgerFailure(error, ledgerFile(stateDir)));
        return otherwise;
      }
    },
    close: async (alsoClose, last) => {
      const fatal = lifecycle.fatal();
      pacer.close(fatal ?? new Error("the daemon is stopping"));
      const cut = setTimeout(
        () => hard.abort(new Error("the daemon stopped")),
        fatal === undefined ? STOP_MS : 0,
      );
      await Promise.all([work.stop(), ...alsoClose]);
      clearTimeout(cut);
      await context.remote.close();
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

/** Kinds of unusable fields that are reported; a service with more is broken in a way that is known by then. */
const ODD_FIELDS_MAX = 50;

/** Reports each kind of unusable field in the service's answers once. */
function onceEach(onNotice: DaemonOptions["onNotice"] = () => undefined): OnOddField {
  const reported = new Set<string>();
  return (field, value) => {
    const words = `the service's answers have ${value} as ${field}: kbsync ignores it`;
    if (reported.size >= ODD_FIELDS_MAX || reported.has(words)) return;
    reported.add(words);
    onNotice(words);
  };
}

/** Opens what actions need of the service. Counts its answers in `steps`. */
function openService(
  options: DaemonOptions,
  ledger: Ledger,
  pacer: Pacer,
  steps: { requests: number },
  isHeld: (signal: AbortSignal) => boolean,
): Omit<ActionContext, "read" | "secretCheck" | "signal" | "moved" | "report"> {
  const { stateDir, service, sync, sources: watched } = options;
  const now = steadyClock();
  const timing = { ...TIMING, ...options.timing };
  const world = options.world ?? REAL_WORLD;
  const remote: Remote = openRemote({
    address: service,
    pacer,
    connections: sync.concurrency + 2,
    timeoutMs: sync.requestTimeoutMs,
    now,
    step: options.step ?? (() => undefined),
    onRequest: options.observer?.request,
    onMoved: () => void (steps.requests += 1),
    onForbidden: (reason) =>
      options.onWarning?.(
        new KbsyncError(reason, {
          code: "request_forbidden",
          hint: "Give the key this right. What needs it waits; everything else is sent.",
        }),
      ),
    onOddField: onceEach(options.onNotice),
    onCapabilities: (declared) => capabilities.learn(declared),
    isHeld,
    connect: world.connect,
  });
  const capabilities: Capabilities = openCapabilities(ledger, remote, {
    hasIds: () => watched.some(({ collection }) => collections.id(collection) !== undefined),
    now,
    nowMs: () => Date.now(),
    againMs: timing.metadataAgainMs,
  });
  const collections = openCollections(ledger, remote);
  return {
    ledger,
    remote,
    collections,
    capabilities,
    trash: openTrash({ stateDir, days: sync.trashDays, ledger, remote }),
    now,
    timing,
    random: world.random,
    yieldSlot: (wait) => wait(() => 1),
    contentKind: "content",
  };
}
