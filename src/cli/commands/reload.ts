import { join } from "node:path";
import type { Logger } from "pino";
import { CONFIG_FILE_NAME } from "../../config/config-file.ts";
import type { Config } from "../../config/load.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { credentialFile } from "../../system/credentials.ts";
import type { ReachedService } from "../compose/embedded-service.ts";
import { credentialOf } from "../compose/models.ts";
import { PASSWORD_FILE } from "../compose/store.ts";
import { compareConfigs, type ConfigChange, liveConfig } from "../state/config-change.ts";
import { contentOf, openFileChanges } from "../state/file-changes.ts";
import type { Context } from "../output/context.ts";
import { credentialsOf } from "../systemd/unit-plan.ts";
import type { Supervisor } from "../systemd/supervise.ts";

/** The settings and dependencies of a daemon. */
export interface Ground {
  readonly config: Config;
  readonly service: ReachedService;
}

/** Reads the configuration again at each SIGHUP, and when its file or a key file has changed. */
export interface Reloads {
  /** Aborts when the daemon must end, to be replaced by one with the settings that `take` returns. */
  signal(): AbortSignal;
  /** Returns the settings to continue with, and starts the next wait. Undefined: nothing has changed. */
  take(): Ground | undefined;
  /** Reads the configuration now. Throws the error of a refused one. */
  reload(): Promise<ConfigChange>;
  /** The changes that are not in force, each with the reason. */
  notApplied(): readonly string[];
  /** Stops listening to signals, and watching the files. */
  stop(): void;
}

export interface ReloadOptions {
  readonly context: Pick<Context, "onHangup" | "cwd" | "env">;
  readonly log: Logger;
  readonly supervisor: Pick<Supervisor, "reloading" | "reloaded">;
  readonly ground: Ground;
  /** Reads configuration and key. Throws a KbsyncError for what cannot be used. */
  readonly read: () => Ground | Promise<Ground>;
  /** Keys of the configuration that take effect without a restart. Default: those of a daemon. */
  readonly live?: ReadonlySet<string>;
  /** Called when `notApplied` may have changed. */
  readonly onRead?: (notApplied: readonly string[]) => void;
  /** See `openFileChanges`. */
  readonly everyMs?: number;
}

/**
 * Starts listening. An invalid configuration is reported, and the old one stays in force. From a valid one, the sources, `sync`
 * and the key of a hosted service take effect at once; the other changes are reported as not applied.
 */
export function openReloads(options: ReloadOptions): Reloads {
  const { context, log, supervisor, ground, read, live, onRead, everyMs } = options;
  let current = ground;
  let next: Ground | undefined;
  let restart = new AbortController();
  let notApplied: readonly string[] = [];
  let isReading = false;
  let isAskedAgain = false;
  const files = openFileChanges(() => void answer(), everyMs);
  files.watch(filesOf(ground.config, context.cwd));
  const fixedKeys = new Map(fixedKeyFiles(ground.config, context.env).map((file) => [file, contentOf(file)]));

  const end = (words: readonly string[]): void => {
    notApplied = words;
    onRead?.(words);
    supervisor.reloaded();
  };
  const readAgain = async (): Promise<ConfigChange> => {
    supervisor.reloading();
    files.note();
    let fresh: Ground;
    try {
      fresh = await read();
    } catch (error) {
      end([refuse(log, error)]);
      throw error;
    }
    files.watch(filesOf(fresh.config, context.cwd));
    const { applied: changes, pending: settings } = compareConfigs(current.config, fresh.config, live);
    const hasNewKey = fresh.service.pauthkey !== current.service.pauthkey;
    const applied = hasNewKey ? [...changes, "the service's key"] : changes;
    const keys = [...fixedKeys]
      .filter(([file, content]) => contentOf(file) !== content)
      .map(([file]) => file);
    const pending = [...settings, ...keys];
    const words = [
      ...pending.map((each) => `${each} needs a restart`),
      ...fresh.config.replacedFolders
        .filter((path) => !ground.config.replacedFolders.includes(path))
        .map((path) => `source ${path} needs a start without folders on the command line`),
    ];
    if (words.length > 0) log.warn(`not applied: ${words.join(", ")}`);
    if (applied.length === 0) {
      log.info("reloaded the configuration: nothing changed");
      end(words);
      return { applied, pending };
    }
    log.info({ applied }, `reloaded the configuration: ${applied.join(", ")}`);
    current = { config: liveConfig(current.config, fresh.config), service: fresh.service };
    next = current;
    notApplied = words;
    restart.abort();
    return { applied, pending };
  };
  /** Reads one at a time. Signals that arrive meanwhile cause one more read. */
  const answer = async (): Promise<void> => {
    isAskedAgain = true;
    if (isReading) return;
    isReading = true;
    while (isAskedAgain) {
      isAskedAgain = false;
      // A refused configuration has been logged.
      await readAgain().catch(() => undefined);
    }
    isReading = false;
  };
  const stop = context.onHangup?.(() => void answer());

  return {
    signal: () => restart.signal,
    take: () => {
      const taken = next;
      next = undefined;
      restart = new AbortController();
      return taken;
    },
    reload: readAgain,
    notApplied: () => notApplied,
    stop: () => {
      files.stop();
      stop?.();
    },
  };
}

/** The status of a program in one line, after the changes that are not in force. */
export function statusWords(notApplied: readonly string[], words: string): string {
  return notApplied.length === 0 ? words : `not applied: ${notApplied.join(", ")}; ${words}`;
}

/** The files that the configuration is read from; without one, the file that would be. */
function filesOf(config: Config, cwd: string): readonly string[] {
  return [config.file ?? join(cwd, CONFIG_FILE_NAME), ...credentialsOf(config).map(({ path }) => path)];
}

/** The key files that only a start reads: that of the database, and those that the service manager has passed to this process. */
function fixedKeyFiles(config: Config, env: NodeJS.ProcessEnv): readonly string[] {
  return credentialsOf(config)
    .filter(({ id }) => id === credentialOf(PASSWORD_FILE) || credentialFile(env, id) !== undefined)
    .map(({ path }) => path);
}

/** Reports why a configuration is not used; returns it in one line. */
function refuse(log: Logger, error: unknown): string {
  const known = error instanceof KbsyncError ? error : undefined;
  const words = error instanceof Error ? error.message : String(error);
  const facts =
    known === undefined ? { err: error } : { code: known.code, subject: known.subject, hint: known.hint };
  log.error(facts, `not applied, the former configuration stays in force: ${words}`);
  return words.split("\n", 1)[0] ?? "";
}
