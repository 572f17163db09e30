import type { KnownFiles } from "./known-files.ts";
import type { KnowledgeService } from "./service.ts";

/** Who calls a tool. */
export interface Caller {
  /** Finds the service. Throws `service_unreachable` where none runs. */
  reach(): Promise<Reached>;
  /** What the ledger of this machine knows; opened for one call, which closes it. */
  files(): KnownFiles;
}

/** The service as one caller has it. */
export interface Reached {
  /** With the caller's key. */
  readonly service: KnowledgeService;
  /**
   * Whether the caller's key is the one that the ledger's folders were synced with. To others a folder is shown only where
   * the service shows them its resources.
   */
  readonly ownsLedger: boolean;
}
