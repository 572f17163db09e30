import type { ResourceKey } from "./resources.ts";

/**
 * Removal of everything that the store holds of a deleted resource. Promises:
 *
 * - After `eraseResource` no method returns anything of the resource, neither its record nor what was made from it.
 * - Each method may be repeated after a crash, and then removes what is left.
 */
export interface ErasureRecords {
  /**
   * Removes the record of a deleted resource, the text in notes of requests about it, and the turns of threads from the first whose
   * answer was given a passage of it. Webhook messages about it lose title, path and digest; those with answers made from it are
   * removed. Does nothing for an unknown one.
   */
  eraseResource(at: ResourceKey): Promise<void>;
  /** Tokens of the files that a resource was the last to use. */
  filesToErase(at: ResourceKey): Promise<readonly string[]>;
  /** Removes the record of a file and the note of its upload. Returns false if something uses the file, or it is gone. */
  eraseFile(token: string): Promise<boolean>;
}
