import type { Resource, ResourceKey } from "./records.ts";

/** Removal of records that have expired. Each call does a bounded part; 0 or an empty list: nothing is left to do. */
export interface RetentionStore {
  /** Returns the record of a deleted resource, without its text. */
  deletedResource(at: ResourceKey): Promise<Resource | undefined>;
  /** Removes the records of resources deleted before `beforeIso`. Returns how many. */
  purgeDeleted(beforeIso: string, limit: number): Promise<number>;
  /** Tokens of files that are older than `beforeIso` and unused since then. */
  unusedFiles(beforeIso: string, limit: number): Promise<readonly string[]>;
  /** Removes the record of such a file. Returns false if the file is in use again or gone. */
  removeUnusedFile(token: string, beforeIso: string): Promise<boolean>;
  /** Removes stored answers older than 24 hours. Returns how many. */
  sweepAnswers(nowMs: number, limit: number): Promise<number>;
  /** Removes dead letters created before `beforeMs`. Returns how many. */
  purgeDead(beforeMs: number, limit: number): Promise<number>;
}
