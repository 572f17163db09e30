import { byRank } from "../../lib/by-rank.ts";
import { countTokens } from "../../lib/tokens.ts";
import type { ResourceRecord } from "../../wire/resource.ts";
import type { SearchAnswer, SearchResult } from "../../wire/search.ts";
import { answered, openClient } from "../send/remote/client.ts";
import type { SourceScope } from "./resource-lookup.ts";
import type { SearchQuery } from "../send/remote/remote.ts";
import type { ServiceAddress } from "../send/remote/transport.ts";

/** Time after which a search without an answer fails, in milliseconds: a person waits for it. */
const PATIENCE_MS = 10_000;
const CONNECTIONS = 4;

/** One owner's part of a collection. */
interface OwnedScope {
  readonly collectionId: string;
  readonly ownerId: string;
}

/** Reads from a service for a person, over connections that stay open between the calls. */
export type SearchClient = ReturnType<typeof openSearchClient>;

/** Opens a client of a service. Sends nothing yet. */
export function openSearchClient(address: ServiceAddress, timeoutMs: number) {
  const remote = openClient({ address, connections: CONNECTIONS, timeoutMs, patienceMs: PATIENCE_MS });
  return {
    /** The answers of the queries; a document that is gone gives none. Throws as `searchOnce`. */
    search: async (queries: readonly SearchQuery[], signal: AbortSignal): Promise<SearchAnswer[]> => {
      const ask = async (query: SearchQuery) => answered("search", () => remote.search(query, signal));
      const answers = await Promise.all(queries.map(ask));
      return answers.filter((answer) => answer !== undefined);
    },
    /** Lists an owner's resources in a collection; may repeat some. Throws as `searchOnce`. */
    list: async (
      scope: OwnedScope,
      onResource: (resource: ResourceRecord) => void,
      signal: AbortSignal,
    ): Promise<void> => {
      await answered("list", () => remote.list(scope, onResource, signal));
    },
    close: (): Promise<void> => remote.close(),
  };
}

/**
 * Sends the queries to a service and closes the connection. Returns the answers; a document that is gone gives none. Throws
 * `service_unreachable`, `key_refused`, or `service_refused` with the service's own code as its subject.
 */
export async function searchOnce(
  address: ServiceAddress,
  queries: readonly SearchQuery[],
  timeoutMs: number,
  signal: AbortSignal,
): Promise<SearchAnswer[]> {
  const client = openSearchClient(address, timeoutMs);
  try {
    return await client.search(queries, signal);
  } finally {
    await client.close();
  }
}

/** The scopes to search: sources that share owner and collection are one scope. */
export function searchScopes(sources: readonly SourceScope[]): OwnedScope[] {
  const scopes = new Map<string, OwnedScope>();
  for (const { collectionId, ownerId } of sources) {
    if (collectionId !== undefined) scopes.set(`${collectionId} ${ownerId}`, { collectionId, ownerId });
  }
  return [...scopes.values()];
}

/**
 * The best results of several answers together; scores mean the same in each. Their texts have at most `tokensMax` tokens
 * together if those of each answer do.
 */
export function bestResults(
  answers: readonly SearchAnswer[],
  topK: number,
  tokensMax = Infinity,
): SearchResult[] {
  const best = answers
    .flatMap(({ results }) => results)
    .toSorted(byRank)
    .slice(0, topK);
  if (answers.length === 1) return best;
  let text = "";
  const over = best.findIndex(({ payload }, at) => {
    text += at === 0 ? payload.content : `\n\n${payload.content}`;
    return countTokens(text) > tokensMax;
  });
  return over === -1 ? best : best.slice(0, over);
}
