import type { Tier } from "../../wire/primitives.ts";

/** One owner's part of a collection, with what is live in it. */
export interface OwnerCounts {
  readonly ownerId: string;
  readonly collectionId: string;
  readonly tier: Tier;
  readonly resources: number;
  readonly chunks: number;
}

/** What of an account's owners is asked for. */
export interface OwnersQuery {
  readonly accountId: string;
  /** Those behind this one. Undefined: from the first. */
  readonly after: Pick<OwnerCounts, "collectionId" | "ownerId"> | undefined;
  readonly limit: number;
}

/** The part of the store that tells who has resources. */
export interface OwnerStore {
  /** Owners with at least one live resource, by collection and then by owner. */
  owners(query: OwnersQuery): Promise<readonly OwnerCounts[]>;
}
