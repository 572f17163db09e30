import type { Tier } from "../../wire/primitives.ts";
import type { ResourceKey, Scope } from "./records.ts";

/** A scope, or one owner's part of a collection named by the collection's tier. */
export type ModelScope =
  | Scope
  | { readonly accountId: string; readonly tier: Tier; readonly ownerId: string };

/** The input of a chunk's vector. */
export interface EmbeddedChunk {
  readonly headings: readonly string[];
  readonly text: string;
}

/**
 * The embedding model that serves each owner's part of a collection: the first model that gave it vectors, until all its
 * chunks have vectors of another one.
 */
export interface ModelStore {
  /** Fingerprint of the serving model; undefined if there is no vector yet. */
  servingFingerprint(scope: ModelScope): Promise<string | undefined>;
  /** Fingerprints of all models that serve somewhere. */
  servingFingerprints(): Promise<readonly string[]>;
  /**
   * Switches owners' parts of these tiers to the model of this fingerprint if no chunk of the part lacks a vector of it.
   * Each part switches atomically. Chunks in `exceptRows` may lack their vectors for good. Returns the number of parts
   * switched.
   */
  serveComplete(fingerprint: string, tiers: readonly Tier[], exceptRows: readonly number[]): Promise<number>;
  /** Removes up to `limit` vectors of models that serve nowhere, except this fingerprint. Returns how many. */
  dropRetired(fingerprint: string, limit: number): Promise<number>;
  /** Chunks of the resource's current version that have a vector of this fingerprint that is not stale. */
  embeddedChunks(at: ResourceKey, fingerprint: string): Promise<readonly EmbeddedChunk[]>;
}
