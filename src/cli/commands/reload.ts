import type { Logger } from "pino";
import type { Config } from "../../config/load.ts";
import { KbsyncError } from "../../lib/failure.ts";
import type { ReachedService } from "../compose/embedded-service.ts";
import { compareConfigs, type ConfigChange, liveConfig } from "../state/config-change.ts";
import type { Context } from "../output/context.ts";
import type { Supervisor } from "../systemd/supervise.ts";

/** The settings and dependencies of a daemon. */
export interface Ground {
  readonly config: Config;
  readonly service: ReachedService;
}

/** Reads the configuration again at each SIGHUP. */
export interface Reloads {
  /** Aborts when the daemon must end, to be replaced by one with the settings that `take` returns. */
  signal(): AbortSignal;
  /** Returns the settings to continue with, and starts the next wait. Undefined: nothing has changed. */
  take(): Ground | undefined;
  /** Reads the configuration now. Throws the error of a refused one. */
  reload(): Promise<ConfigChange>;
  /** Stops listening to signals. */
  stop(): void;
}

export interface ReloadOptions {
  readonly context: Pick<Context, "onHangup">;
  readonly log: Logger;
  readonly supervisor: Pick<Supervisor, "reloading" | "reloaded">;
  readonly ground: Ground;
  /** Reads configuration and key. Throws a KbsyncError for what cannot be used. */
  readonly read: () => Ground | Promise<Ground>;
  /** Keys of the configuration that take effect without a restart. Default: those of a daemon. */
  readonly live?: ReadonlySet<string>;
}

/**
 * Starts listening. An invalid configuration is reported, and the old one stays in force. From a valid one, the sources, `sync`
 * and the key of a hosted service take effect at once; the other changes are reported as pending.
 */
export function openReloads({ context, log, supervisor, ground, read, live }: ReloadOptions): Reloads {
  let current = ground;
  let next: Ground | undefined;
  let restart = new AbortController();
  let isReading = false;
  let isAskedAgain = false;

  const readAgain = async (): Promise<ConfigChange> => {
    supervisor.reloading();
    let fresh: Ground;
    try {
      fresh = await read();
    } catch (error) {
      supervisor.reloaded(refuse(log, error));
      throw error;
    }
    const { applied: changes, pending } = compareConfigs(current.config, fresh.config, live);
    const hasNewKey = fresh.service.pauthkey !== current.service.pauthkey;
    const applied = hasNewKey ? [...changes, "the service's key"] : changes;
    if (pending.length > 0)
      log.warn(
        { pending },
        `changed in the configuration, effective after the next start: ${pending.join(", ")}`,
      );
    if (applied.length === 0) {
      log.info("reloaded the configuration: nothing changed");
      supervisor.reloaded(undefined);
      return { applied, pending };
    }
    log.info({ applied }, `reloaded the configuration: ${applied.join(", ")}`);
    current = { config: liveConfig(current.config, fresh.config), service: fresh.service };
    next = current;
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
    stop: () => stop?.(),
  };
}

/** Reports why a configuration is not used; returns it in one line. */
export function refuse(log: Logger, error: unknown): string {
  const known = error instanceof KbsyncError ? error : undefined;
  const words = error instanceof Error ? error.message : String(error);
  const facts =
    known === undefined ? { err: error } : { code: known.code, subject: known.subject, hint: known.hint };
  log.error(facts, `the configuration is refused, the old one stays in force: ${words}`);
  return `the configuration is refused: ${words.split("\n", 1)[0] ?? ""}`;
}
