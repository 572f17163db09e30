import type { Tier } from "../../wire/primitives.ts";

/** One owner's part of a collection, with the counts of what is live in it. */
export interface OwnerCounts {
  readonly ownerId: string;
  readonly collectionId: string;
  readonly tier: Tier;
  readonly resources: number;
  readonly chunks: number;
}

/** A page of an account's owners. */
export interface OwnersQuery {
  readonly accountId: string;
  /** The page starts after this one; undefined: at the first. */
  readonly after: Pick<OwnerCounts, "collectionId" | "ownerId"> | undefined;
  readonly limit: number;
}

/** The owners that have resources. */
export interface OwnerStore {
  /** Owners with at least one live resource, ordered by collection, then by owner. */
  owners(query: OwnersQuery): Promise<readonly OwnerCounts[]>;
}
