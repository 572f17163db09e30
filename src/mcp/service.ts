import type { Dispatcher } from "undici";
import { KbsyncError } from "../lib/failure.ts";
import { openAgent } from "../lib/proxy.ts";
import { readServerEvents } from "../lib/server-events.ts";
import { Change, ChangesAnswer } from "../wire/changes.ts";
import type { SearchContext } from "../wire/context.ts";
import { Failure } from "../wire/failure.ts";
import { OWNERS_MAX, OwnersAnswer, type OwnerEntry } from "../wire/owners.ts";
import { ListAnswer, ResourceAnswer, type ResourceRecord } from "../wire/resource.ts";
import { KEY_HEADER, ROUTES } from "../wire/routes.ts";
import { SearchAnswer } from "../wire/search.ts";
import {
  type Answer,
  send,
  lacksOperation,
  accepted,
  reaching,
  begin,
  answerOf,
  reachingBody,
} from "./requests.ts";

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
  /** Returns a page of these resources, at a kbsync without their texts. */
  records(
    collectionId: string,
    ownerId: string,
    page: PageRequest,
    signal: AbortSignal,
  ): Promise<RecordsPage>;
  /** Returns a page of changes of documents; by default from the oldest one. Undefined if the service lacks this. */
  changes(page: Partial<PageRequest>, signal: AbortSignal): Promise<ChangesAnswer["data"] | undefined>;
  /**
   * Yields the changes after a cursor, and later ones when they are made, until the signal is aborted or the service closes
   * the stream.
   */
  followChanges(cursor: string, signal: AbortSignal): AsyncIterable<Change>;
  /** Returns a page of owners with resources, by default of the largest size. Undefined if the service lacks this. */
  owners(signal: AbortSignal, page?: Partial<PageRequest>): Promise<OwnersPage | undefined>;
}

/** A page to read. */
export interface PageRequest {
  readonly limit: number;
  /** `nextCursor` of the previous page; undefined: from the start. */
  readonly cursor?: string | undefined;
}

/** A page of resources. */
export interface RecordsPage {
  readonly records: readonly ResourceRecord[];
  /** Start of the next page; null on the last one. */
  readonly nextCursor: string | null;
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
/** Longest event of a stream in characters: a change with its path. */
const EVENT_CHARS_MAX = 256 * 1024;
/** Connections to each host. */
const CONNECTIONS = 16;

/** Opens a connection pool. It connects on first use. */
export function openServiceConnections(): ServiceConnections {
  const timeouts = { headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS, connect: { timeout: 5000 } };
  const agent = openAgent({ ...timeouts, connections: CONNECTIONS });
  // Streams hold their connections, and would leave none for requests. Callers limit how many there are.
  const streams = openAgent(timeouts);
  return {
    as: (address) => serviceAt(agent, streams, address),
    close: async () => {
      await Promise.all([agent.destroy(), streams.destroy()]);
    },
  };
}

function serviceAt(
  agent: Dispatcher,
  streams: Dispatcher,
  { apiUrl, dbUrl, pauthkey }: ServiceAddress,
): KnowledgeService {
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
    records: async (collectionId, ownerId, { limit, cursor }, signal) => {
      const from = cursor === undefined ? {} : { cursor };
      const query = { collectionId, ownerId, limit: String(limit), content: "false", ...from };
      const answer = await get(`${ROUTES.byCollection}?${new URLSearchParams(query).toString()}`, signal);
      const { resources, nextCursor } = accepted(answer, ListAnswer).data;
      if (nextCursor !== undefined) return { records: resources, nextCursor };
      // A service without pages returned everything.
      const { entries, ...rest } = pageOf(resources, { limit, cursor });
      return { records: entries, ...rest };
    },
    changes: async (page, signal) => {
      const answer = await get(`${ROUTES.changes}?${pageQuery(page)}`, signal);
      return lacksOperation(answer) ? undefined : accepted(answer, ChangesAnswer).data;
    },
    followChanges: (cursor, signal) =>
      followed(streams, dbUrl, `${ROUTES.changes}?${pageQuery({ cursor })}`, { pauthkey, signal }),
    owners: async (signal, { limit = OWNERS_MAX, cursor } = {}) => {
      const from = cursor === undefined ? "" : `&cursor=${encodeURIComponent(cursor)}`;
      const answer = await get(`${ROUTES.owners}?limit=${limit}${from}`, signal);
      return lacksOperation(answer) ? undefined : accepted(answer, OwnersAnswer).data;
    },
  };
}

function pageQuery({ limit, cursor }: Partial<PageRequest>): string {
  const query = new URLSearchParams();
  if (limit !== undefined) query.set("limit", String(limit));
  if (cursor !== undefined) query.set("cursor", cursor);
  return query.toString();
}

/** Reads a stream of changes. */
async function* followed(
  agent: Dispatcher,
  host: string,
  path: string,
  { pauthkey, signal }: { readonly pauthkey: string; readonly signal: AbortSignal },
): AsyncGenerator<Change> {
  const headers = { [KEY_HEADER]: pauthkey, accept: "text/event-stream" };
  const answer = await reaching(host, signal, () =>
    begin(agent, host, path, { method: "GET", headers, signal }),
  );
  if (answer.statusCode !== 200) accepted(await answerOf(answer), ChangesAnswer);
  const body = reachingBody(host, signal, answer.body);
  for await (const { event, data } of readServerEvents(body, EVENT_CHARS_MAX)) {
    if (event === "change") yield Change.parse(data);
    if (event !== "error") continue;
    const { message, error } = Failure.parse(data);
    throw new KbsyncError(message, {
      code: error.code,
      retryable: error.code === "overloaded",
      ...(error.hint !== undefined && { hint: error.hint }),
    });
  }
}
