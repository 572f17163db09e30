import Database from "better-sqlite3";
import { ConfigFile } from "../../../src/config/schema.ts";
import { KbsyncError } from "../../../src/lib/failure.ts";
import { openDaemon, type Daemon, type DaemonOptions } from "../../../src/sync/daemon.ts";
import type { HoldKind } from "../../../src/sync/ledger/sources/rows.ts";
import type { WatchedSource } from "../../../src/sync/scan/rules/rules.ts";
import { type Conditions, type Kept, type Mode } from "../history.ts";
import type { Clock } from "../virtual/clock.ts";
import type { SimulatedProcess, Stage } from "../virtual/stage.ts";
import { SimulatedConnection } from "./connection.ts";
import { NESTED_ROOT, SECOND_ROOT, SOURCE_ROOT } from "./disk.ts";
import { innerFolders } from "../../../src/config/folders.ts";
import { type Owners, SECOND_PLACE } from "./expected.ts";
import type { Judge } from "./judge.ts";
import { Crash, type Machine } from "./machine.ts";
import type { Network } from "./network.ts";
import { openRefusalWatch } from "./refusals.ts";
import { API_URL, DB_URL, RESOURCES_URL, SERVICE_KEY } from "./service.ts";
import type { Watching } from "./watcher.ts";

export const OWNER_ID = "simulated-owner";
const SECOND_OWNER_ID = "another-owner";
export const HOLD_DELETES_OVER = 6;
export const HOLD_DELETES_PERCENT = 30;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** How often the daemon asks whether the service takes metadata. */
const METADATA_AGAIN_MS = 10 * MINUTE_MS;

interface Settings {
  readonly chunkSize: number;
  readonly team: string | undefined;
  /** Whether there is a second source. */
  readonly inner: boolean;
}

/** The daemon's processes, one after another. */
export interface Runner {
  start(mode: Mode): void;
  /** Stops the process in an orderly way; the next one starts some time after its end. */
  stop(restMs: number, next: Mode): void;
  /** The process that runs dies at its nth effect from now. */
  crash(effects: number, kept: Kept, restMs: number, next: Mode): void;
  /** Processes die one after another, each at its nth effect. */
  crashInARow(effects: readonly number[], restMs: number): void;
  /** The process stops, and the next one starts on another machine. */
  moveOn(state: "copied" | "new"): void;
  /** No crash that was asked for will come any more. */
  spare(): void;
  /** Counts an effect of the process that runs; false: it died of it. */
  survives(): boolean;
  /** Settings of the next process. */
  configure(settings: Partial<Settings>): void;
  /** Settings of the process that runs. */
  chunkSize(): number;
  team(): string | undefined;
  hasInner(): boolean;
  /** The daemon that runs for good; undefined between two processes, while it stops and in a single pass. */
  running(): Daemon | undefined;
}

export interface RunnerOptions {
  readonly clock: Clock;
  readonly stage: Stage;
  readonly machine: Machine;
  readonly network: Network;
  readonly watching: Watching;
  readonly judge: () => Judge;
  /** The next process has another sort of sources. */
  readonly onSources: () => void;
  readonly conditions: Conditions;
  readonly note: (line: () => string) => void;
}

/** Opens the runner; nothing runs before it is started. */
export function openRunner(options: RunnerOptions): Runner {
  const { clock, stage, machine, network, watching, judge, conditions, note } = options;
  let current:
    | { process: SimulatedProcess; daemon: Daemon | undefined; stop: AbortController; mode: Mode }
    | undefined;
  interface Death {
    effects: number;
    readonly kept: Kept;
    readonly restMs: number;
    readonly mode: Mode;
  }
  let crash: Death | undefined;
  /** Crashes of the processes after that. */
  let deaths: readonly Death[] = [];
  /** Processes that ended with an error, one after another. */
  let failed = 0;
  let planned: { readonly restMs: number; readonly mode: Mode } | undefined;
  const { second, joins } = conditions;
  let settings: Settings = {
    chunkSize: 1000,
    team: undefined,
    inner: second !== undefined && joins !== true,
  };
  let settingsNow = settings;

  let machines = 1;
  let movesTo: "copied" | "new" | undefined;

  const startIn = (ms: number, mode: Mode): void => {
    clock.at(clock.nowMs() + Math.max(1, ms), { alive: true }, () => {
      machine.bury();
      if (movesTo !== undefined) {
        machines += 1;
        if (movesTo === "new") {
          machine.empty();
          judge().ledgerLost(false);
        }
        judge().movedOn();
        movesTo = undefined;
      }
      start(mode);
    });
  };
  const onEffect = (process: SimulatedProcess, name: string): void => {
    if (crash === undefined) return;
    crash.effects -= 1;
    if (crash.effects > 0) return;
    const { kept, restMs, mode } = crash;
    [crash, ...deaths] = deaths;
    planned = undefined;
    const left = machine.kill(process, kept);
    note(() => `process ${process.number} dies at ${name}, ${left} of the ledger is left`);
    current = undefined;
    const isLost = left === "none" || left === "backup";
    if (isLost) judge().ledgerLost(left === "backup");
    else if (left !== "all") judge().powerLost();
    startIn(restMs, mode);
    throw new Crash(name);
  };
  const onEnd = (process: SimulatedProcess, error: unknown): void => {
    if (!process.alive) return;
    const mode = current?.mode;
    note(() => `process ${process.number} ends${error === undefined ? "" : `: ${wordsOf(error)}`}`);
    if (planned === undefined && mode === "run") {
      judge().fail("died", `the daemon ended by itself: ${wordsOf(error)}`);
    }
    if (planned === undefined && error !== undefined && !isForPerson(error)) {
      judge().fail("died", `what ended the process is reported to nobody: ${wordsOf(error)}`);
    }
    current = undefined;
    machine.kill(process, "all");
    // A person who sees it fail repeatedly tries less often: a service may be down for a day.
    failed = error === undefined ? 0 : failed + 1;
    const restMs = planned?.restMs ?? Math.min(HOUR_MS, MINUTE_MS * 2 ** Math.max(0, failed - 1));
    const wanted = planned?.mode ?? "run";
    planned = undefined;
    startIn(restMs, wanted);
  };

  const running = (): Daemon | undefined => (planned === undefined ? current?.daemon : undefined);
  const watchRefusals = openRefusalWatch({ clock, network, judge, running });
  const optionsOf = (process: SimulatedProcess): DaemonOptions => ({
    stateDir: machine.stateDir(),
    service: { apiUrl: API_URL, dbUrl: DB_URL, resourcesUrl: RESOURCES_URL, pauthkey: SERVICE_KEY },
    sources: sourcesOf(settingsNow, ownersOf(conditions), conditions),
    // Elsewhere nothing is asked for it, so that histories stay as they were.
    timing: { metadataAgainMs: conditions.metadataFromMs === undefined ? Infinity : METADATA_AGAIN_MS },
    sync: {
      settleMs: conditions.settleMs,
      rescanMinutes: conditions.rescanMinutes,
      requestTimeoutMs: conditions.requestTimeoutMs,
      auditHours: conditions.auditHours,
      holdDeletesOver: HOLD_DELETES_OVER,
      holdDeletesPercent: HOLD_DELETES_PERCENT,
      trashDays: 0,
      concurrency: conditions.concurrency,
    },
    step: (name) => process.effect(name),
    onActivity: ({ source, action, path, outcome, docId, message }) => {
      if (outcome === "done" && docId !== undefined && action !== "discard" && action !== "delete")
        judge().acknowledged(source, path);
      note(() => `daemon: ${action} ${path} ${outcome} ${docId ?? ""} ${message ?? ""}`.trimEnd());
    },
    onWarning: (error) => note(() => `daemon warns: ${error.message}`),
    world: {
      watch: watching.watchFor(process),
      random: () => stage.random.next(),
      machineId: () => `machine ${machines}`,
      connect: (_origin, limits) =>
        new SimulatedConnection({
          clock,
          process,
          timeoutMs: limits.headersTimeout ?? 0,
          pass: (request) => {
            note(() => `${request.operation} ${request.docId ?? ""} leaves`);
            judge().leaves(request);
            return network.pass(request);
          },
          onDelivered: (request, answer) => {
            watchRefusals(answer);
            judge().delivered(request, answer);
          },
        }),
    },
  });
  const begin = (process: SimulatedProcess, mode: Mode, stop: AbortController): Promise<unknown> => {
    const { signal } = stop;
    const daemon = openDaemon(optionsOf(process));
    if (mode === "run") {
      current = { process, daemon, stop, mode };
      return daemon.run({ signal });
    }
    return passOnce(daemon, signal);
  };
  const start = (mode: Mode): void => {
    const process = machine.boot(onEffect);
    stage.process = process;
    const hadInner = settingsNow.inner;
    settingsNow = settings;
    if (settings.inner !== hadInner) options.onSources();
    note(() => `process ${process.number} starts: ${mode}`);
    if (mode === "once") judge().startsPass(process.number);
    judge().started();
    const stop = new AbortController();
    current = { process, daemon: undefined, stop, mode };
    try {
      begin(process, mode, stop).then(
        () => onEnd(process, undefined),
        (error: unknown) => onEnd(process, error),
      );
    } catch (error) {
      judge().fail("died", `the daemon does not start: ${wordsOf(error)}`);
    }
  };

  return {
    start,
    stop: (restMs, mode) => {
      if (current === undefined || planned !== undefined) return;
      planned = { restMs, mode };
      current.stop.abort(new Error("stopped"));
    },
    moveOn: (state) => {
      movesTo = state;
      if (current === undefined || planned !== undefined) return;
      planned = { restMs: 1000, mode: "run" };
      current.stop.abort(new Error("stopped"));
    },
    crash: (effects, kept, restMs, mode) => {
      crash = { effects, kept, restMs, mode };
    },
    crashInARow: (effects, restMs) => {
      [crash, ...deaths] = effects.map((each) => ({ effects: each, kept: "all", restMs, mode: "run" }));
    },
    spare: () => {
      crash = undefined;
      deaths = [];
    },
    survives: () => {
      try {
        stage.process.effect("a turn");
        return true;
      } catch (error) {
        if (error instanceof Crash) return false;
        throw error;
      }
    },
    configure: (changed) => {
      settings = { ...settings, ...changed };
    },
    chunkSize: () => settingsNow.chunkSize,
    team: () => settingsNow.team,
    hasInner: () => settingsNow.inner,
    running,
  };
}

/** What one pass may end with in a bad network: an error with words for a person. The ledger is never at fault here. */
function isForPerson(error: unknown): boolean {
  return error instanceof KbsyncError && !error.code.startsWith("ledger_");
}

async function passOnce(daemon: Daemon, signal: AbortSignal): Promise<void> {
  try {
    await daemon.syncOnce({ signal });
  } finally {
    await daemon.close();
  }
}

/** Who owns the resources of the daemon's sources. */
export function ownersOf({ second }: Conditions): Owners {
  if (second === undefined) return { first: OWNER_ID, second: undefined };
  return { first: OWNER_ID, second: second === "same-owner" ? OWNER_ID : SECOND_OWNER_ID };
}

function sourcesOf(
  { chunkSize, team, inner }: Settings,
  { first, second }: Owners,
  { nested, additive }: Conditions,
): WatchedSource[] {
  const settings = { chunkSize };
  const rules = team === undefined ? [] : [{ match: "**", metadata: { team } }];
  const secondRoot = nested === true ? NESTED_ROOT : SECOND_ROOT;
  const paths = [SOURCE_ROOT, ...(inner ? [secondRoot] : [])];
  const deletes = additive === true ? "never" : "mirror";
  const { sources } = ConfigFile.parse({
    sources: paths.map((path) => ({ path, settings, rules, deletes })),
  });
  return sources.map((config) => {
    const { path } = config;
    return Object.assign(config, {
      absolutePath: path,
      innerFolders: innerFolders(path, paths),
      ownerId: path === SOURCE_ROOT ? first : (second ?? first),
    });
  });
}

/** What the ledger of a process says of the file at a place; nothing when it is closed or has no row. */
export function ownedBy(process: SimulatedProcess, place: string): readonly string[] {
  const isSecond = place.startsWith(SECOND_PLACE);
  const roots = isSecond ? [SECOND_ROOT, NESTED_ROOT] : [SOURCE_ROOT];
  const query = queryOf<[string, string], string>(
    process,
    `SELECT doc_id FROM files JOIN sources ON sources.id = files.source
     WHERE sources.path = ? AND files.path = ? AND files.state NOT IN ('held', 'doomed') AND doc_id IS NOT NULL`,
  );
  return roots.flatMap((root) => query?.all(root, isSecond ? place.slice(SECOND_PLACE.length) : place) ?? []);
}

/** Whether the daemon can ask for the list: the ledger of a process has the collection's id. */
export function knowsCollection(process: SimulatedProcess): boolean {
  return queryOf<[], number>(process, "SELECT 1 FROM collections")?.get() !== undefined;
}

/** Why sources of a process are held until their list is compared again, or a person agrees. */
export function holdsOf(process: SimulatedProcess): readonly HoldKind[] {
  const query = "SELECT DISTINCT loss_kind FROM sources WHERE loss IS NOT NULL AND loss_agreed = 0";
  return queryOf<[], HoldKind>(process, query)?.all() ?? [];
}

/** Whether the ledger of a process can be asked. */
export function isLedgerOpen(process: SimulatedProcess): boolean {
  return queryOf(process, "SELECT 1") !== undefined;
}

/** Whether the ledger of a process has a resource, as a file's or as one that is to go. Yes, when it is closed. */
export function isOwned(process: SimulatedProcess, docId: string): boolean {
  const query = queryOf<[string, string], number>(
    process,
    "SELECT 1 FROM files WHERE doc_id = ? UNION ALL SELECT 1 FROM intents WHERE doc_id = ?",
  );
  return query === undefined || query.get(docId, docId) !== undefined;
}

const queries = new WeakMap<Database.Database, Map<string, Database.Statement>>();

/** A query of one column over the ledger of a process, prepared once; undefined while that is closed. */
function queryOf<P extends unknown[], R>(
  { handles }: SimulatedProcess,
  text: string,
): Database.Statement<P, R> | undefined {
  for (const handle of handles) {
    if (!(handle instanceof Database) || !handle.open || !handle.name.endsWith("ledger.db")) continue;
    const known = queries.get(handle) ?? new Map<string, Database.Statement>();
    queries.set(handle, known);
    const query = known.get(text) ?? handle.prepare(text).pluck();
    known.set(text, query);
    // The text says what it is given and gives.
    return query as Database.Statement<P, R>;
  }
  return undefined;
}

export function wordsOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
