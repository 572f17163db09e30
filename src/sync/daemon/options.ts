import type { DaemonActivity } from "../../wire/daemon-files.ts";
import { connectPool } from "../../lib/proxy.ts";
import type { SyncConfig } from "../../config/schema/sync.ts";
import { machineId } from "../identity/installation.ts";
import type { DaemonObserver } from "../send/remote/observer.ts";
import type { Connect, ServiceAddress } from "../send/remote/transport.ts";
import type { WatchedSource } from "../scan/rules/rules.ts";
import type { Timing } from "../plan/timing.ts";
import { watchSource } from "../watch/watch.ts";

/** Options of a daemon. */
export interface DaemonOptions {
  /** Folder of the ledger. Created if missing, for this user alone. */
  readonly stateDir: string;
  readonly service: ServiceAddress & {
    /** Identifies the service in the ledger. Default: dbUrl. Give a constant if the address changes (embedded). */
    readonly identity?: string;
    /**
     * How long the service's list may lag behind its answers: newer changes are not judged by it. Default: two minutes. 0
     * for a service whose list contains everything that it acknowledged.
     */
    readonly listLagMs?: number;
  };
  readonly sources: readonly WatchedSource[];
  readonly sync: SyncConfig;
  /** Called for each action that was done or postponed. */
  readonly onActivity?: (activity: DaemonActivity) => void;
  /** Called for a problem that the daemon survives, such as an unwatchable folder or an unreachable service. */
  readonly onWarning?: (error: Error) => void;
  /** The ledger is being migrated from an older version, which may block everything else for minutes. */
  readonly onUpgrade?: () => void;
  /** Called with a message when a reported problem is over, or the ledger was migrated. */
  readonly onNotice?: (words: string) => void;
  /** Called when the status may have changed; up to thousands of times per second. */
  readonly onChange?: () => void;
  /** Observes the daemon, for metrics. */
  readonly observer?: DaemonObserver;
  /**
   * Time without an answer after which the daemon gives up with `service_unreachable`. Default: see `syncOnce`; never
   * in `run`.
   */
  readonly patienceMs?: number;
  /** Called before and after each effect. An error that it throws simulates a crash. For tests. */
  readonly step?: (name: string) => void;
  /** Delays that a test shortens. Default: `TIMING`. */
  readonly timing?: Partial<Timing>;
  /** Replaces the outside world in a simulation. */
  readonly world?: World;
}

/** The daemon's dependencies other than disk and timers. Only the simulation replaces them. */
export interface World {
  readonly watch: typeof watchSource;
  /** Opens the connections to one host. */
  readonly connect: Connect;
  /** Id of the machine. */
  readonly machineId: () => string;
  /** In [0, 1). */
  readonly random: () => number;
}

/** The real world. */
export const REAL_WORLD: World = {
  watch: watchSource,
  connect: (origin, limits) => connectPool(origin, limits),
  machineId,
  random: Math.random,
};
