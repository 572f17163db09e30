import type { LiveStatus } from "../wire/daemon-status.ts";
import type { KnownFiles } from "./known-files.ts";
import type { KnowledgeService } from "./service.ts";

/** The caller of a tool. */
export interface Caller {
  /** Finds the service. Throws `service_unreachable` if none runs. */
  reach(): Promise<Reached>;
  /** Opens the files that this machine's ledger knows; each call closes them. */
  files(): KnownFiles;
}

/** The service for one caller. */
export interface Reached {
  /** The service, with the caller's key. */
  readonly service: KnowledgeService;
  /**
   * Whether the caller's key is the one that synced the ledger's folders. Other callers see a folder only if the service
   * shows them its resources.
   */
  readonly ownsLedger: boolean;
  /** This machine's daemon. Absent for callers without the key that its folders are synced with: its answers name files. */
  readonly daemon?: CallerDaemon;
}

/** The operation of a daemon that tools need. */
export interface CallerDaemon {
  /** Undefined: none runs. */
  status(signal: AbortSignal): Promise<LiveStatus | undefined>;
}
