import type { DaemonActivity } from "../../wire/daemon.ts";
import type { SyncConfig } from "../../config/schema.ts";
import { type DocumentReader, openThreadReader } from "../read/reader.ts";
import type { DaemonObserver } from "../remote/observer.ts";
import { connectPool, type Connect, type ServiceAddress } from "../remote/remote.ts";
import type { WatchedSource } from "../rules/rules.ts";
import type { Timing } from "../plan/timing.ts";
import { watchSource } from "../watch/watch.ts";

/** What a daemon needs. */
export interface DaemonOptions {
  /** Folder of the ledger; made if missing, for this user alone. */
  readonly stateDir: string;
  readonly service: ServiceAddress & {
    /** Names the service in the ledger. Default: dbUrl. Give a constant where the address changes (embedded). */
    readonly identity?: string;
    /**
     * How long the service's list may lag behind its answers: what was sent more lately is not judged by it. Default:
     * two minutes. 0 for a service that lists what it has acknowledged.
     */
    readonly listLagMs?: number;
  };
  readonly sources: readonly WatchedSource[];
  readonly sync: SyncConfig;
  /** Each action that was done or given up for now. */
  readonly onActivity?: (activity: DaemonActivity) => void;
  /** Something went wrong that the daemon lives with: a folder that cannot be watched, a service that does not answer. */
  readonly onWarning?: (error: Error) => void;
  /** The ledger is of an older version and is brought up to date now: for minutes, it may be, nothing else is done. */
  readonly onUpgrade?: () => void;
  /** What was warned of is over, or the ledger was brought up to date, in words. */
  readonly onNotice?: (words: string) => void;
  /** Something that `status` tells may have changed; up to thousands of times a second. */
  readonly onChange?: () => void;
  /** Hears what the daemon does, for metrics. */
  readonly observer?: DaemonObserver;
  /** Give up when the service has not answered for so long, with `service_unreachable`. Default: see `syncOnce`; in `run` never. */
  readonly patienceMs?: number;
  /** Told before and after each effect; one that throws stands for a crash. For tests. */
  readonly step?: (name: string) => void;
  /** Waits that a test shortens. Default: `TIMING`. */
  readonly timing?: Partial<Timing>;
  /** What a simulation puts in place of the world. */
  readonly world?: World;
}

/** What the daemon takes from outside beside disk and timers; each has one implementation but for the simulation's. */
export interface World {
  readonly watch: typeof watchSource;
  /** Opens the connections to one host. */
  readonly connect: Connect;
  /** Opens what reads the files that are to be sent. */
  readonly openReader: () => DocumentReader;
  /** In [0, 1). */
  readonly random: () => number;
}

/** The world as it is. */
export const REAL_WORLD: World = {
  watch: watchSource,
  connect: connectPool,
  openReader: openThreadReader,
  random: Math.random,
};
