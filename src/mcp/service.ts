import type { Dispatcher } from "undici";
import { KbsyncError } from "../lib/failure.ts";
import { openAgent } from "../lib/proxy.ts";
import type { SearchContext } from "../wire/context.ts";
import { OWNERS_MAX, OwnersAnswer, type OwnerEntry } from "../wire/owners.ts";
import { ListAnswer, ResourceAnswer, type ResourceRecord } from "../wire/resource.ts";
import { KEY_HEADER, ROUTES } from "../wire/routes.ts";
import { SearchAnswer } from "../wire/search.ts";
import { type Answer, send, lacksOperation, accepted } from "./requests.ts";

/** Returns a page of a whole list. Its cursor is the number of entries before the page. Throws `cursor_invalid`. */
export function pageOf<T>(
  whole: readonly T[],
  { limit, cursor = "0" }: PageRequest,
): { readonly entries: readonly T[]; readonly nextCursor: string | null } {
  if (!/^\d{1,9}$/.test(cursor)) {
    throw new KbsyncError(`${cursor} is no cursor of this list`, {
      code: "cursor_invalid",
      hint: "Send the cursor of an earlier page, or none.",
    });
  }
  const end = Number(cursor) + limit;
  const entries = whole.slice(Number(cursor), end);
  return { entries, nextCursor: end < whole.length ? String(end) : null };
}

/** Addresses of a service, and the key for all requests. */
export interface ServiceAddress {
  readonly apiUrl: string;
  readonly dbUrl: string;
  readonly pauthkey: string;
}

/** Body of a collection search or a document search. */
export interface SearchRequest extends SearchContext {
  readonly query: string;
  readonly top_k: number;
  readonly score?: number | undefined;
  readonly filter?: object | undefined;
  readonly doc_id?: string;
  readonly collection_id?: string;
  readonly owner_id?: string;
}

/** The service's operations that tools need. They throw KbsyncErrors, with the service's code, message and hint if it refuses. */
export interface KnowledgeService {
  search(request: SearchRequest, signal: AbortSignal): Promise<SearchAnswer>;
  /** Returns a resource with its text. Undefined if the service has only lists (it is no kbsync). */
  resource(id: string, signal: AbortSignal): Promise<ResourceRecord | undefined>;
  /** Returns all resources of an owner's part of a collection, with their texts. */
  list(collectionId: string, ownerId: string, signal: AbortSignal): Promise<readonly ResourceRecord[]>;
  /** Returns a page of owners with resources, by default of the largest size. Undefined if the service lacks this. */
  owners(signal: AbortSignal, page?: Partial<PageRequest>): Promise<OwnersPage | undefined>;
}

/** A page to read. */
export interface PageRequest {
  readonly limit: number;
  /** `nextCursor` of the previous page; undefined: from the start. */
  readonly cursor?: string | undefined;
}

/** A page of owners, by collection and then by owner. */
export interface OwnersPage {
  readonly owners: readonly OwnerEntry[];
  /** Start of the next page; null on the last one. */
  readonly nextCursor: string | null;
}

/** Connections to a service, shared by all keys. */
export interface ServiceConnections {
  as(address: ServiceAddress): KnowledgeService;
  close(): Promise<void>;
}

/** Timeout of an answer. A search takes milliseconds, a remote one with a reranker seconds. */
const TIMEOUT_MS = 60_000;
/** Connections to each host. */
const CONNECTIONS = 16;

/** Opens a connection pool. It connects on first use. */
export function openServiceConnections(): ServiceConnections {
  const timeouts = { headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS, connect: { timeout: 5000 } };
  const agent = openAgent({ ...timeouts, connections: CONNECTIONS });
  return {
    as: (address) => serviceAt(agent, address),
    close: () => agent.destroy(),
  };
}

function serviceAt(agent: Dispatcher, { apiUrl, dbUrl, pauthkey }: ServiceAddress): KnowledgeService {
  const get = (path: string, signal: AbortSignal, host = dbUrl): Promise<Answer> =>
    send(agent, host, path, { method: "GET", headers: { [KEY_HEADER]: pauthkey }, signal });
  const post = (host: string, path: string, body: object, signal: AbortSignal): Promise<Answer> => {
    const headers = { [KEY_HEADER]: pauthkey, "content-type": "application/json" };
    return send(agent, host, path, { method: "POST", headers, body: JSON.stringify(body), signal });
  };
  return {
    search: async (request, signal) =>
      accepted(await post(apiUrl, ROUTES.query, request, signal), SearchAnswer),
    resource: async (id, signal) => {
      const answer = await get(`${ROUTES.resource}/${encodeURIComponent(id)}`, signal);
      return lacksOperation(answer) ? undefined : accepted(answer, ResourceAnswer).data;
    },
    list: async (collectionId, ownerId, signal) => {
      const query = new URLSearchParams({ collectionId, ownerId }).toString();
      const answer = await get(`${ROUTES.byCollection}?${query}`, signal);
      return accepted(answer, ListAnswer).data.resources;
    },
    owners: async (signal, { limit = OWNERS_MAX, cursor } = {}) => {
      const from = cursor === undefined ? "" : `&cursor=${encodeURIComponent(cursor)}`;
      const answer = await get(`${ROUTES.owners}?limit=${limit}${from}`, signal);
      return lacksOperation(answer) ? undefined : accepted(answer, OwnersAnswer).data;
    },
  };
}
