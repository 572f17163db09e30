import type { Index } from "../../search-index.ts";
import type { Transaction } from "../database/connections.ts";
import { listDocuments } from "../scopes/document-list.ts";
import { readPending } from "./pending.ts";
import { embeddingWritesOn } from "../vectors/embeddings.ts";
import { servingOn } from "../vectors/serving.ts";
import type { IndexCaches } from "./caches.ts";
import { searchesOn } from "./searches.ts";
import { readSurroundings } from "./surroundings.ts";
import { findTarget } from "../scopes/target.ts";

/** The index inside a transaction. */
export function indexOn(tx: Transaction, caches: IndexCaches): Index {
  return {
    ...searchesOn(tx, caches),
    ...embeddingWritesOn(tx),
    ...servingOn(tx),
    async surroundings(query) {
      const target = await findTarget(tx, caches.filters, query.scope);
      return target === undefined ? [] : readSurroundings(tx, target, query);
    },
    documents: (query) => listDocuments(tx, caches.filters, query),
    async pending(query) {
      const { filter: _, ...scope } = query.scope;
      const target = await findTarget(tx, caches.filters, scope);
      return readPending(tx, caches.checked, target, query);
    },
  };
}
