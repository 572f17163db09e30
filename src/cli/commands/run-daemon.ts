import type { Logger } from "pino";
import type { Config } from "../../config/load.ts";
import { codeOf, messageOf } from "../../lib/failure.ts";
import {
  type DaemonOperations,
  type DaemonProgram,
  operationsOf,
} from "../../sync/daemon/control/operations.ts";
import type { Control } from "../../sync/daemon/control/server.ts";
import type { Daemon } from "../../sync/daemon.ts";
import type { ProgressSample } from "../../system/progress.ts";
import { openConfiguredDaemon } from "../compose/configured-daemon.ts";
import type { ReachedService } from "../compose/embedded-service.ts";
import type { DaemonBridge } from "../compose/daemon-bridge.ts";
import type { Context } from "../output/context.ts";
import { answerStop, followDaemon, openLoggedFailures } from "./follow.ts";
import { daemonMetrics, metricsLine, serveMetrics } from "../output/monitoring.ts";
import { type Ground, openReloads, type Reloads, statusWords } from "./reload.ts";
import { standingWords } from "../output/standing-words.ts";
import type { ConfigChange } from "../state/config-change.ts";
import { type FolderChangesOptions, openFolderChanges } from "../state/folder-changes.ts";
import { type InstanceFacts, registerInstance } from "../state/instances.ts";
import { removePlanCopies } from "../state/plan-copies.ts";
import type { StateFolder } from "../state/state-folder.ts";
import type { Supervised, Supervisor } from "../systemd/supervise.ts";
import { sourcesInUnit, watchUnit } from "../systemd/unit-sources.ts";
import { programVersion } from "../output/version.ts";

/** Dependencies of `runDaemon` besides those of the daemon. */
export interface DaemonRun {
  readonly context: Context;
  readonly command: InstanceFacts["command"];
  readonly state: StateFolder;
  readonly log: Logger;
  readonly supervisor: Supervisor;
  /** Reads configuration and key again, at a SIGHUP. */
  readonly read: () => Ground | Promise<Ground>;
  /** Other parts of this process whose stall means that it hangs. Default: none. */
  readonly samples?: () => Readonly<Record<string, ProgressSample>>;
  /** Passes requests over the service's port to the daemon that runs. Default: none. */
  readonly bridge?: DaemonBridge;
  /** How the configuration is read when its folders change. */
  readonly edits: Pick<FolderChangesOptions, "request" | "areNamed">;
  /** Called when the first pass is done. */
  readonly onAgreement?: () => void;
}

/**
 * Runs the daemon until a signal arrives, and reports its progress. After a reload of the configuration, a new daemon replaces
 * it: if folders and ledger agree, this costs one scan and no request. Throws what ends a daemon, and `source_replaced`.
 */
export async function runDaemon(ground: Ground, run: DaemonRun): Promise<void> {
  const { context, state, log, supervisor } = run;
  // Progress and a summary report the first pass: thousands of log lines would hide both. Later changes are logged.
  let levelOfDone: "debug" | "info" = "debug";
  const logged = openLoggedFailures(log, context);
  const metrics = await daemonMetrics(ground.config, ground.service);
  const inUnit = (config: Config): Config => ({
    ...config,
    sources: sourcesInUnit(config.sources, context.env),
  });
  const open = ({ config, service }: Ground): Daemon =>
    openConfiguredDaemon(inUnit(config), state, service, log, {
      levelOfDone: () => levelOfDone,
      // Only the first pass has a summary.
      ...(levelOfDone === "debug" && { onActivity: logged.onActivity }),
      onChange: () => supervisor.changed(),
      onUpgrade: () => supervisor.longStep(),
      ...(metrics && { metrics }),
    });
  let current = ground;
  let daemon = open(ground);
  metrics?.readDaemon(() => daemon.figures());
  const following = new AbortController();
  const follow = async (): Promise<void> => {
    const signal = AbortSignal.any([context.signal, following.signal]);
    await followDaemon(daemon, context, logged, signal);
    levelOfDone = "info";
    run.onAgreement?.();
  };
  const facts = ({ config }: Ground): InstanceFacts => ({
    command: run.command,
    stateDir: state.path,
    config: config.file ?? null,
    folders: config.sources.map(({ absolutePath }) => absolutePath),
  });
  const monitoring = await serveMetrics(ground.config, metrics, () => notReady(context, daemon)).catch(
    async (error: unknown) => {
      await daemon.close();
      throw error;
    },
  );
  context.stdout.write(metricsLine(monitoring));
  const reloads = openReloads({ context, log, supervisor, ground, read: run.read });
  // Copies of the ledger that killed processes left.
  for (const problem of removePlanCopies(run.state, { own: true })) run.log.warn(problem);
  const program = programOf(run, reloads, () => current.config);
  const followed = follow();
  const endAnswer = answerStop(context, () => daemon.status());
  const registration = registerInstance(context.env, facts(ground), (words) => log.warn(words));
  try {
    for (;;) {
      const unit = watchUnit(current.config.sources, context.env);
      const supervised = supervisedDaemon(daemon, current, run.samples);
      const words = (): string => statusWords(reloads.notApplied(), supervised.words());
      supervisor.watch({ ...supervised, words });
      const signal = AbortSignal.any([context.signal, reloads.signal(), unit.signal]);
      await runReachable(daemon, current, run, program, signal).finally(() => unit.stop());
      if (unit.problem() !== undefined) throw unit.problem();
      const next = reloads.take();
      if (next === undefined || context.signal.aborted) break;
      // Only the first daemon's first pass is reported.
      following.abort();
      await followed;
      levelOfDone = "info";
      current = next;
      registration.update(facts(next));
      next.service.readSources?.(next.config.sources);
      daemon = open(next);
      // New ones: the figures of removed sources must not be exported for ever.
      metrics?.readDaemon(() => daemon.figures());
    }
    log.debug("stopped");
  } finally {
    registration.remove();
    reloads.stop();
    await monitoring?.close();
    following.abort();
    await followed;
    endAnswer();
  }
}

/** Runs one daemon, which the other commands reach meanwhile. */
async function runReachable(
  daemon: Daemon,
  { service }: Ground,
  { context, state, log, bridge }: DaemonRun,
  program: RunProgram,
  signal: AbortSignal,
): Promise<void> {
  const facts = { version: programVersion(), startedMs: context.nowMs() };
  const operations = operationsOf(daemon, facts, program);
  const ended = new AbortController();
  bridge?.attach(operations, AbortSignal.any([signal, ended.signal]));
  const control = await serveControl(context, state, operations, log);
  // Closed before the daemon releases the state folder, because the next process on it opens a socket of its own.
  const closeControl = (): void => void control?.close();
  signal.addEventListener("abort", closeControl, { once: true });
  try {
    await publish(service, daemon);
    // The run opens the sources first, so that removed folders are known to be removed.
    await Promise.all([
      daemon.run({ signal }),
      ...program.takeRemoved().map(async (folder) => deleteDocuments(daemon, folder, log)),
    ]);
  } finally {
    ended.abort();
    signal.removeEventListener("abort", closeControl);
    await control?.close();
  }
}

/** Writes the service's address now that commands reach the daemon: a script that finds the one finds the other. */
async function publish(service: ReachedService, daemon: Daemon): Promise<void> {
  try {
    service.publish?.();
  } catch (error) {
    await daemon.close();
    throw error;
  }
}

/** The program's services for its daemon. */
interface RunProgram extends DaemonProgram {
  /** Returns the folders that were removed with their documents since the last call. */
  takeRemoved(): readonly string[];
}

function programOf({ edits }: DaemonRun, reloads: Reloads, config: () => Config): RunProgram {
  let removed: string[] = [];
  const reload = async (): Promise<ConfigChange> => reloads.reload();
  return {
    reload,
    notApplied: () => reloads.notApplied(),
    ...openFolderChanges({ ...edits, config, reload, onDelete: (folder) => removed.push(folder) }),
    takeRemoved: () => {
      const taken = removed;
      removed = [];
      return taken;
    },
  };
}

/** Approves the deletion of a removed folder's documents, as the person did. */
async function deleteDocuments(daemon: Daemon, folder: string, log: Logger): Promise<void> {
  try {
    await daemon.approve(folder);
  } catch (error) {
    // It had no documents.
    if (codeOf(error) === "source_unknown") return;
    log.warn(`the documents of ${folder} are not deleted: ${messageOf(error)}`);
  }
}

/** The reports about a daemon to the service manager. */
export function supervisedDaemon(
  daemon: Pick<Daemon, "figures" | "status" | "pulse">,
  { service }: Ground,
  others: () => Readonly<Record<string, ProgressSample>> = () => ({}),
): Supervised {
  // A service in this process must answer: if it does not, the process hangs.
  const isElsewhere = service.probe === undefined;
  return {
    // A service elsewhere may be away for a day. Restarting the daemon would not help.
    isReady: () => daemon.figures().planned || (isElsewhere && daemon.pulse().service !== "open"),
    words: () => {
      const words = standingWords(daemon.status());
      return daemon.figures().planned ? words : `scanning the folders; ${words}`;
    },
    samples: () => {
      const { queue, scan, service: pace } = daemon.pulse();
      const waitsForOthers = isElsewhere && pace !== "open";
      return {
        "the queue": { ...queue, waitsForOthers },
        "the scan of the folders": { ...scan, waitsForOthers },
        ...others(),
      };
    },
  };
}

/** Why the daemon is not ready: it is ready once it knows all its work. */
function notReady(context: Context, daemon: Daemon): string | undefined {
  if (context.signal.aborted) return "shutting down";
  return daemon.figures().planned ? undefined : "the folders are being scanned for the first time";
}

/** Opens the socket for the other commands. A daemon without one syncs nevertheless, and logs a warning. */
async function serveControl(
  context: Context,
  state: StateFolder,
  operations: DaemonOperations,
  log: Logger,
): Promise<Control | undefined> {
  try {
    // Only a daemon loads Node's HTTP server, which would cost every other command 9 ms.
    const { openControl } = await import("../../sync/daemon/control/server.ts");
    return await openControl({
      stateDir: state.path,
      version: programVersion(),
      env: context.env,
      operations,
      onSocketOutside: (path, reason) =>
        log.warn(`the control socket is ${path}, not in the state folder: ${reason}`),
    });
  } catch (error) {
    log.warn(`no control socket, so commands cannot reach this daemon: ${messageOf(error)}`);
    return undefined;
  }
}
