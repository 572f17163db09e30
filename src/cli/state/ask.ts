import { resolve } from "node:path";
import { type Config, loadConfig } from "../../config/load.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { askDaemon, type AskOptions } from "../../sync/control/client.ts";
import {
  CHANGES,
  LEDGER_OPERATIONS,
  type LedgerOperation,
  type LedgerOperations,
  openCommands,
} from "../../sync/operator/commands.ts";
import { changeLedger, type OperatorLedger, readLedger } from "../../sync/operator/offline.ts";
import { openResourceLookup, type ResourceLookup } from "../../sync/operator/resource-lookup.ts";
import type { WatchedSource } from "../../sync/rules/rules.ts";
import type { AnswerOf, DaemonOperation, RequestOf } from "../../wire/daemon.ts";
import type { Context } from "../output/context.ts";
import { type CommonOptions, configRequest } from "../output/options.ts";
import { ledgerFolders } from "./sources.ts";

/** Runs the operations of a command, by the daemon of its state folder or on the ledger. */
export interface Operator {
  readonly config: Config;
  /** The configured sources, then those that only the ledger knows. */
  sources(): readonly WatchedSource[];
  /** Undefined: no daemon runs on the state folder. */
  ask<N extends DaemonOperation>(
    name: N,
    request: RequestOf<N>,
    onLine?: AskOptions<N>["onLine"],
  ): Promise<AnswerOf<N> | undefined>;
  /** Asks what only a daemon can answer or do. Throws `no_daemon`. */
  need<N extends DaemonOperation>(
    name: N,
    request: RequestOf<N>,
    onLine?: AskOptions<N>["onLine"],
  ): Promise<AnswerOf<N>>;
  /** Runs it on the ledger, as without a daemon. Undefined: there is no ledger. */
  actAlone<N extends LedgerOperation>(name: N, request: RequestOf<N>): Promise<AnswerOf<N> | undefined>;
  /** Runs it by the daemon; if none runs, on the ledger. Undefined: there is no ledger either. */
  act<N extends LedgerOperation>(
    name: N,
    request: RequestOf<N>,
  ): Promise<{ readonly answer: AnswerOf<N>; readonly isLive: boolean } | undefined>;
}

/** Loads the configuration for a command that talks to the daemon. Throws what loading throws. */
export function openOperator(context: Context, options: CommonOptions): Operator {
  const config = loadConfig(configRequest(context, options));
  const { stateDir } = config;
  const ask: Operator["ask"] = (name, request, onLine) =>
    askDaemon(stateDir, name, request, { signal: context.signal, ...(onLine !== undefined && { onLine }) });
  // `kbsync up FOLDER` leaves sources that no configuration names.
  const sources = (): readonly WatchedSource[] => [
    ...config.sources,
    ...ledgerFolders(stateDir).flatMap(
      (folder) => loadConfig(configRequest(context, options, folder)).sources,
    ),
  ];
  const actAlone: Operator["actAlone"] = async (name, request) => {
    const operation: LedgerOperations[typeof name] = LEDGER_OPERATIONS[name];
    const run = (ledger: OperatorLedger): Promise<AnswerOf<typeof name>> =>
      operation(openCommands(ledger, { stateDir, sources }), request, context.signal);
    return CHANGES.has(name) ? changeLedger(stateDir, run) : readLedger(stateDir, run);
  };
  return {
    config,
    sources,
    ask,
    actAlone,
    need: async (...asked) => {
      const answer = await ask(...asked);
      if (answer !== undefined) return answer;
      throw new KbsyncError(`no daemon runs on the state folder ${stateDir}`, {
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

/** A path as it was typed, made absolute; nothing where none was. */
export function absolute<K extends string>(
  name: K,
  context: Context,
  path: string | undefined,
): { readonly [P in K]?: string } {
  // A computed key widens to an index signature, which the caller's shape is narrower than.
  return path === undefined ? {} : ({ [name]: resolve(context.cwd, path) } as { readonly [P in K]?: string });
}

/** `nothing_synced`: the ledger of the state folder knows no source, so there is nothing to do a command on. */
export function nothingSynced(stateDir: string): KbsyncError {
  return new KbsyncError(`nothing was synced with the state folder ${stateDir} yet`, {
    code: "nothing_synced",
    subject: stateDir,
    hint: "Run `kbsync up` or `kbsync sync` first; --state-dir or --config names another state folder.",
  });
}

/** Opens the ledger's resources for a search, which the caller closes. Throws `nothing_synced` if there are none to search. */
export function openSynced(stateDir: string): ResourceLookup {
  const lookup = openResourceLookup(stateDir);
  if (lookup?.sources.some(({ collectionId }) => collectionId !== undefined) === true) return lookup;
  lookup?.close();
  throw nothingSynced(stateDir);
}

/** Prints a result as JSON. */
export function printJson(context: Context, value: unknown): void {
  context.stdout.write(`${JSON.stringify(value, undefined, 2)}\n`);
}
