import type { Tier } from "../../wire/primitives.ts";
import type { ResourceKey, Scope } from "./records.ts";

/** One owner's part of a collection, by the collection's tier, or where a search looks. */
export type ModelPlace =
  | Scope
  | { readonly accountId: string; readonly tier: Tier; readonly ownerId: string };

/** A chunk that has its vector: what it was made of. */
export interface EmbeddedChunk {
  readonly headings: readonly string[];
  readonly text: string;
}

/**
 * Which embedding model's vectors answer where. Each owner's part of a collection is served by one model: the first that
 * gave it vectors, until all its chunks have those of another one.
 */
export interface ModelStore {
  /** Fingerprint of the model that serves; undefined where nothing has a vector yet. */
  servingFingerprint(place: ModelPlace): Promise<string | undefined>;
  /** Fingerprints that serve anywhere. */
  servingFingerprints(): Promise<readonly string[]>;
  /**
   * Lets the model of this fingerprint serve wherever no chunk of these tiers lacks a vector of it, all at once for each
   * owner's part. Chunks of `exceptRows` may lack theirs for good. Answers how many parts changed over.
   */
  serveComplete(fingerprint: string, tiers: readonly Tier[], exceptRows: readonly number[]): Promise<number>;
  /** Takes away up to `limit` vectors of models that serve nowhere, but not of this fingerprint; answers how many. */
  dropRetired(fingerprint: string, limit: number): Promise<number>;
  /** Chunks of the resource's present version that have a vector of this fingerprint which is still right. */
  embeddedChunks(at: ResourceKey, fingerprint: string): Promise<readonly EmbeddedChunk[]>;
}
