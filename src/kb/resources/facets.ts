import type { FacetsAnswer, FacetsQuery } from "../../wire/facets.ts";
import type { Scope } from "../store/search-index.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";
import { noCollection } from "./list.ts";

/**
 * Counts the values of the metadata of an owner's resources in a collection (an addition). Reads one field after the other, so
 * that changes meanwhile may be in some of the counts. Omits fields that no matching resource has, unless the query names them.
 */
export async function readFacets(
  kb: KnowledgeBase,
  accountId: string,
  { collectionId, ownerId, fields, filter, limit, cursor }: FacetsQuery,
): Promise<FacetsAnswer["data"]> {
  const tier = await kb.collections.tierOf(accountId, collectionId);
  if (tier === undefined) throw noCollection(collectionId, "collectionId");
  const whole = { accountId, collectionId, ownerId: ownerId.toWellFormed() };
  const scope: Scope = filter === undefined ? whole : { ...whole, filter };
  const after = cursor === undefined ? undefined : Buffer.from(cursor, "base64url").toString();
  // One extra field shows whether there are more.
  const found =
    fields === undefined
      ? await kb.index.metadataFields({ scope, after, limit: limit + 1 })
      : fields.slice(after === undefined ? 0 : fields.indexOf(after) + 1);
  const page = found.slice(0, limit);
  const facets: FacetsAnswer["data"]["facets"] = [];
  for (const field of page) {
    const facet = await kb.index.facet({ scope, field });
    if (fields !== undefined || facet.distinct > 0) facets.push(facet);
  }
  const last = found.length > limit ? page.at(-1) : undefined;
  return { facets, nextCursor: last === undefined ? null : Buffer.from(last).toString("base64url") };
}
