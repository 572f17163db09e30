import { resolve } from "node:path";
import { type Config, loadConfig } from "../../config/load.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { askDaemon, type AskOptions } from "../../sync/control/client.ts";
import type { CommandName, Request, ResultOf } from "../../sync/control/protocol.ts";
import type { Context } from "../output/context.ts";
import { type CommonOptions, configRequest } from "../output/options.ts";

/** A command's way to the daemon of its state folder. */
export interface Operator {
  readonly config: Config;
  /** Undefined: no daemon runs on the state folder. */
  ask<C extends CommandName>(
    request: Request & { readonly command: C },
    onEvent?: AskOptions<C>["onEvent"],
  ): Promise<ResultOf<C> | undefined>;
  /** Asks what only a daemon can tell or do. Throws `no_daemon`. */
  need<C extends CommandName>(
    request: Request & { readonly command: C },
    onEvent?: AskOptions<C>["onEvent"],
  ): Promise<ResultOf<C>>;
}

/** Loads the configuration for a command that talks to the daemon. Throws what loading throws. */
export function openOperator(context: Context, options: CommonOptions): Operator {
  const config = loadConfig(configRequest(context, options));
  const ask: Operator["ask"] = (request, onEvent) =>
    askDaemon(config.stateDir, request, {
      signal: context.signal,
      ...(onEvent !== undefined && { onEvent }),
    });
  return {
    config,
    ask,
    need: async (request, onEvent) => {
      const result = await ask(request, onEvent);
      if (result !== undefined) return result;
      throw new KbsyncError(`no daemon runs on the state folder ${config.stateDir}`, {
        code: "no_daemon",
        subject: config.stateDir,
        hint: "Start one with `kbsync up` or `kbsync run`; --state-dir or --config names another state folder.",
      });
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

/** Prints a result as JSON. */
export function printJson(context: Context, value: unknown): void {
  context.stdout.write(`${JSON.stringify(value, undefined, 2)}\n`);
}
