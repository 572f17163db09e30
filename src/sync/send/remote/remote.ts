import { ROUTES } from "../../../wire/routes.ts";
import type { SearchContext } from "../../../wire/context.ts";
import { SearchAnswer } from "../../../wire/search.ts";
import { readAnswer, type Reply } from "./answer.ts";
import { openHosts, openTransport, type TransportOptions } from "./transport.ts";
import { resourceRequests } from "./resource-requests.ts";
import { fileRequests } from "./file-requests.ts";
import { type CollectionOptions, collectionRequests } from "./collection-requests.ts";

export interface SearchQuery {
  readonly query: string;
  readonly topK: number;
  /** Conditions on the metadata of documents; a service without filters ignores them. */
  readonly filter?: object | undefined;
  /** How much the results say; a service without these additions ignores them. */
  readonly context?: SearchContext | undefined;
  readonly where: { readonly docId: string } | { readonly collectionId: string; readonly ownerId: string };
}

/**
 * The operations of the service. Each passes the pacer's gate and makes one attempt; retries are up to the caller. They
 * throw only the signal's reason and what the gate throws.
 */
export type Remote = ReturnType<typeof openRemote>;

/** Dependencies of a client of a service. */
export interface RemoteOptions extends TransportOptions, CollectionOptions {}

/** Opens the client of a service. Sends nothing yet. */
export function openRemote(options: RemoteOptions) {
  const hosts = openHosts(options);
  const transport = openTransport(options, hosts);
  const { attempt, send, json } = transport;
  return {
    ...resourceRequests(transport, options),
    ...fileRequests(transport, hosts, options),
    ...collectionRequests(transport, options),

    search: async (
      { query, topK, filter, context, where }: SearchQuery,
      signal: AbortSignal,
    ): Promise<Reply<SearchAnswer>> =>
      attempt("search", signal, async () => {
        const scope =
          "docId" in where
            ? { doc_id: where.docId }
            : { collection_id: where.collectionId, owner_id: where.ownerId };
        const body = JSON.stringify({ query, top_k: topK, filter, ...context, ...scope });
        const answer = await send("api", { method: "POST", path: ROUTES.query, headers: json, body }, signal);
        return readAnswer(answer, SearchAnswer, "resource");
      }),

    close: (): Promise<void> => hosts.close(),
  };
}
