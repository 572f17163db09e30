import type { Resource, ResourceKey } from "./records.ts";

/** What is kept for a while and then goes. Each call does a bounded part; 0 or none: nothing is left to do. */
export interface RetentionStore {
  /** A deleted resource as the account's books have it: without text. */
  deletedResource(at: ResourceKey): Promise<Resource | undefined>;
  /** Removes the records of resources deleted before then; answers how many. */
  purgeDeleted(beforeIso: string, limit: number): Promise<number>;
  /** Tokens of files older than that which nothing has used since. */
  unusedFiles(beforeIso: string, limit: number): Promise<readonly string[]>;
  /** Removes the note of such a file. False: something uses it by now, or it is gone. */
  removeUnusedFile(token: string, beforeIso: string): Promise<boolean>;
  /** Removes what repeated requests would have been answered with, older than 24 hours; answers how many. */
  sweepAnswers(nowMs: number, limit: number): Promise<number>;
  /** Removes dead letters from before then; answers how many. */
  purgeDead(beforeMs: number, limit: number): Promise<number>;
}
