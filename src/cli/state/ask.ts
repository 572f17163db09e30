import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Config, loadConfig } from "../../config/load.ts";
import { codeOf, KbsyncError } from "../../lib/failure.ts";
import { askDaemon, type AskOptions } from "../../sync/daemon/control/client.ts";
import {
  CHANGES,
  type LedgerOperation,
  ledgerOperations,
  type LedgerOperations,
  openCommands,
} from "../../sync/operate/commands.ts";
import { changeLedger, type OperatorLedger, readLedger } from "../../sync/operate/offline.ts";
import { openResourceLookup, type ResourceLookup } from "../../sync/operate/resource-lookup.ts";
import type { WatchedSource } from "../../sync/scan/rules/rules.ts";
import type { AnswerOf, DaemonOperation, RequestOf } from "../../wire/daemon.ts";
import type { Context } from "../output/context.ts";
import { type CommonOptions, configRequest } from "../output/options.ts";
import { noDaemonWords, unreachableProcess } from "./no-daemon.ts";
import { readableLookup, rememberedFolders } from "./sources.ts";
import { isOnDisk, locatePath } from "./typed-path.ts";

/** Runs the operations of a command, by the daemon of its state folder or on the ledger. */
export interface Operator {
  readonly config: Config;
  /** The configured sources, then those that only the ledger knows. */
  sources(): readonly WatchedSource[];
  /** The absolute path that a person means; see `locatePath`. */
  locate(typed: string): string;
  /** Undefined: no daemon runs on the state folder. */
  ask<N extends DaemonOperation>(
    name: N,
    request: RequestOf<N>,
    onLine?: AskOptions<N>["onLine"],
  ): Promise<AnswerOf<N> | undefined>;
  /** Runs an operation that needs a daemon. Throws `no_daemon`. */
  need<N extends DaemonOperation>(
    name: N,
    request: RequestOf<N>,
    onLine?: AskOptions<N>["onLine"],
  ): Promise<AnswerOf<N>>;
  /** Runs an operation on the ledger, as if no daemon ran. Undefined: there is no ledger. */
  actAlone<N extends LedgerOperation>(name: N, request: RequestOf<N>): Promise<AnswerOf<N> | undefined>;
  /** Runs an operation in the daemon, or on the ledger if none runs. Undefined: there is no ledger either. */
  act<N extends LedgerOperation>(
    name: N,
    request: RequestOf<N>,
  ): Promise<{ readonly answer: AnswerOf<N>; readonly isLive: boolean } | undefined>;
}

/** Longest wait for a daemon that starts, or that starts again with a changed configuration, and the poll interval. */
const RESTART_MS = 5000;
const RESTART_POLL_MS = 100;

/** Whether a request ended because its daemon is starting or stopping, for example on a changed configuration. */
export function isRestarting(error: unknown): boolean {
  return ["daemon_stopping", "control_lost"].includes(codeOf(error) ?? "");
}

/** Loads the configuration for a command that talks to the daemon. Throws what loading throws. */
export function openOperator(context: Context, options: CommonOptions): Operator {
  const config = loadConfig(configRequest(context, options));
  const { stateDir } = config;
  const ask: Operator["ask"] = (name, request, onLine) =>
    askDaemon(stateDir, name, request, { signal: context.signal, ...(onLine !== undefined && { onLine }) });
  // `kbsync up FOLDER` leaves sources that no configuration names.
  const sources = (): readonly WatchedSource[] => {
    const configured = new Set(config.sources.map(({ absolutePath }) => absolutePath));
    const others = rememberedFolders(stateDir).filter(({ path }) => !configured.has(path));
    return [...config.sources, ...loadConfig(configRequest(context, options, others)).sources];
  };
  const actAlone: Operator["actAlone"] = async (name, request) => {
    const run = (ledger: OperatorLedger): Promise<AnswerOf<typeof name>> => {
      const commands = openCommands(ledger, { stateDir, sources });
      const operation: LedgerOperations[typeof name] = ledgerOperations(commands)[name];
      return operation(request, context);
    };
    return CHANGES.has(name) ? changeLedger(stateDir, run) : readLedger(stateDir, run);
  };
  return {
    config,
    sources,
    locate: (typed) => {
      const lookup = readableLookup(stateDir);
      try {
        const folders = new Set([...config.sources, ...(lookup?.sources ?? [])].map(folderOf));
        const isKnown = (path: string): boolean => isOnDisk(path) || lookup?.knows(path) === true;
        return locatePath(typed, { cwd: context.cwd, folders: [...folders], isKnown });
      } finally {
        lookup?.close();
      }
    },
    ask,
    actAlone,
    need: async (...asked) => {
      let ended: unknown;
      for (let waitedMs = 0; waitedMs <= RESTART_MS; waitedMs += RESTART_POLL_MS) {
        const answer = await ask(...asked).catch((error: unknown) => {
          if (!isRestarting(error)) throw error;
          ended = error;
        });
        if (answer !== undefined) return answer;
        if (unreachableProcess(stateDir) === undefined) break;
        await sleep(RESTART_POLL_MS, undefined, { signal: context.signal });
      }
      if (ended !== undefined) throw ended;
      throw new KbsyncError(noDaemonWords(stateDir, ` on the state folder ${stateDir}`), {
        code: "no_daemon",
        subject: stateDir,
        hint: "Start one with `kbsync up` or `kbsync run`; --state-dir or --config names another state folder.",
      });
    },
    act: async (name, request) => {
      const live = await ask(name, request);
      if (live !== undefined) return { answer: live, isLive: true };
      const answer = await actAlone(name, request);
      return answer && { answer, isLive: false };
    },
  };
}

/** The path that a person typed, as `locate` understands it; nothing if none was typed. */
export function locatedPath(
  operator: Pick<Operator, "locate">,
  path: string | undefined,
): { readonly path?: string } {
  return path === undefined ? {} : { path: operator.locate(path) };
}

/** The typed folder of a source as an absolute path; nothing if none was typed. The source may no longer exist. */
export function absoluteFolder(
  { cwd }: Pick<Context, "cwd">,
  folder: string | undefined,
): { readonly folder?: string } {
  return folder === undefined ? {} : { folder: resolve(cwd, folder) };
}

function folderOf(source: { readonly path: string; readonly absolutePath?: string }): string {
  return source.absolutePath ?? source.path;
}

/** `nothing_synced`: the ledger of the state folder knows no source, so the command has nothing to work on. */
export function nothingSynced(stateDir: string): KbsyncError {
  return new KbsyncError(`nothing was synced with the state folder ${stateDir} yet`, {
    code: "nothing_synced",
    subject: stateDir,
    hint: "Sync a folder first: `kbsync up FOLDER`. To use another state folder, name it with --state-dir or --config.",
  });
}

/** Opens the ledger's resources for a search, which the caller closes. Throws `nothing_synced` if there are none to search. */
export function openSynced(stateDir: string): ResourceLookup {
  const lookup = openResourceLookup(stateDir);
  if (
    [...(lookup?.sources ?? []), ...(lookup?.formerSources ?? [])].some(
      ({ collectionId }) => collectionId !== undefined,
    ) &&
    lookup !== undefined
  )
    return lookup;
  lookup?.close();
  throw nothingSynced(stateDir);
}

/** Prints a result as JSON. */
export function printJson(context: Context, value: unknown): void {
  context.stdout.write(`${JSON.stringify(value, undefined, 2)}\n`);
}
