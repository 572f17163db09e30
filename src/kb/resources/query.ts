import type { ContextFields } from "../../wire/context.ts";
import type { Pending, SearchBody } from "../../wire/search.ts";
import { contextOf, withContext } from "../search/context.ts";
import { search } from "../search/search.ts";
import type { SearchOutcome } from "../search/search.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";
import { noCollection } from "./list.ts";
import type { Searched } from "./pending.ts";
import { invalidField, noResource, Refusal } from "./refusal.ts";

/** Operation 3: searches, and counts what waits meanwhile. `during` runs the search itself. */
export async function answerQuery(
  kb: KnowledgeBase,
  accountId: string,
  body: SearchBody,
  during: <T>(search: () => Promise<T>) => Promise<T>,
): Promise<SearchOutcome & { readonly pending: Pending }> {
  const searched = await findSearched(kb, accountId, body);
  const [pending, outcome] = await Promise.all([
    kb.pending(searched),
    during(() => queryResources(kb, accountId, searched, body)),
  ]);
  return { ...outcome, pending };
}

/** Searches what was found for a body. */
export async function queryResources(
  kb: KnowledgeBase,
  accountId: string,
  { scope: whole, tier }: Searched,
  body: Pick<SearchBody, "filter" | "query" | "score" | "top_k" | keyof typeof ContextFields>,
): Promise<SearchOutcome> {
  const startMs = performance.now();
  const scope = body.filter === undefined ? whole : { ...whole, filter: body.filter };
  const model = tier === "fastest" ? undefined : await kb.embedderFor(scope);
  const context = contextOf(body);
  const request = {
    scope,
    tier,
    query: body.query.toWellFormed(),
    topK: body.top_k,
    scoreMin: body.score,
  };
  const { modelTurns, reranker } = kb;
  const found = await search(
    kb.index,
    model && modelTurns.queries(model.queries ?? model, accountId),
    request,
    reranker && modelTurns.judge(reranker, accountId),
  );
  const outcome = context === undefined ? found : await withContext(kb.index, whole, found, context);
  kb.onSearched?.(tier, (performance.now() - startMs) / 1000);
  return outcome;
}

/** Finds what a body names. Throws if this account has no such resource or collection. */
async function findSearched(kb: KnowledgeBase, accountId: string, body: SearchBody): Promise<Searched> {
  const target = targetOf(body);
  if (target.kind === "resource") {
    const tier = await kb.records.tierOf({ accountId, id: target.docId });
    if (tier === undefined) throw noResource(target.docId);
    return { scope: { accountId, resourceId: target.docId }, tier };
  }
  const { collectionId, ownerId } = target;
  const tier = await kb.collections.tierOf(accountId, collectionId);
  if (tier === undefined) throw noCollection(collectionId, "collection_id");
  return { scope: { accountId, collectionId, ownerId: ownerId.toWellFormed() }, tier };
}

/** Reads what to search: one resource, or one owner's part of a collection. Throws for neither, for both, and without an owner. */
function targetOf(body: SearchBody): Target {
  const { doc_id: docId, collection_id: collectionId, owner_id: ownerId } = body;
  if (docId !== undefined && collectionId !== undefined) {
    throw invalidField(
      "collection_id",
      "expected either doc_id or collection_id, got both",
      "Send only doc_id to search one resource, or collection_id with owner_id to search a collection.",
    );
  }
  // A document has exactly one owner, so an owner_id next to doc_id is ignored.
  if (docId !== undefined) return { kind: "resource", docId };
  if (collectionId === undefined) {
    throw new Refusal(
      "target_missing",
      "Nothing to search in: expected doc_id, or collection_id with owner_id.",
      {
        field: "doc_id",
      },
    );
  }
  if (ownerId === undefined) {
    throw new Refusal("owner_missing", "owner_id: a search of a collection needs an owner, got none.", {
      field: "owner_id",
      hint: "Send the owner_id of the resources. A resource created without one has the account's id, shown as ownerId.",
    });
  }
  return { kind: "collection", collectionId, ownerId };
}

type Target =
  | { readonly kind: "resource"; readonly docId: string }
  | { readonly kind: "collection"; readonly collectionId: string; readonly ownerId: string };
