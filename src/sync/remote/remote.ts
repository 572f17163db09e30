import { z } from "zod";
import { codeOf, messageOf } from "../../lib/failure.ts";
import type { LocatedText } from "../../lib/markup/located-text.ts";
import { MAIL_TYPE } from "../../wire/constants.ts";
import type { UserMetadata } from "../../wire/metadata.ts";
import type { Settings, Tier } from "../../wire/primitives.ts";
import { CollectionsAnswer, ResourceRecord } from "../../wire/resource.ts";
import { IDEMPOTENCY_HEADER, KEY_HEADER, ROUTES } from "../../wire/routes.ts";
import type { SearchContext } from "../../wire/context.ts";
import { SearchAnswer } from "../../wire/search.ts";
import { UploadAnswer } from "../../wire/upload.ts";
import type { FileLocation } from "../disk/file-location.ts";
import { jsonWithText, type SentText } from "../document/json-text.ts";
import { header, readAnswer, withKey, type RawAnswer, type Reply } from "./answer.ts";
import { download, type ExpectedSize, fileAddress, type Sink } from "./download.ts";
import type { ExchangeRequest } from "./exchange.ts";
import { readPage, unexpected } from "./list-page.ts";
import { TornFile, uploadBody } from "./multipart.ts";
import {
  NOT_SENT,
  openHosts,
  openTransport,
  type Hosts,
  type MayLeave,
  type Transport,
  type TransportOptions,
} from "./transport.ts";

/** What a create sends. */
export interface NewResource {
  readonly title: string;
  readonly description: string;
  readonly settings: Settings;
  readonly tier: Tier;
  readonly ownerId: string;
  readonly body:
    /** The locations are for services that take them. */
    { readonly content: SentText; readonly locations?: LocatedText["locations"] } | { readonly url: string };
  /** For services that take it. */
  readonly metadata?: UserMetadata | undefined;
}

/** What an update sends: only the given fields change. */
export interface ResourceChange {
  readonly title: string;
  readonly description?: string;
  readonly content?: SentText;
  /** Of the content. For services that take them. */
  readonly locations?: LocatedText["locations"];
  readonly url?: string;
  /** Replaces all metadata. For services that take it. */
  readonly metadata?: UserMetadata | undefined;
}

/** The service's progress with a request that it accepted. */
export interface Taken {
  /** The service has stored the document durably and is still processing it: the resource's state shows the end. */
  readonly isInFlight: boolean;
  /** Parts of the document that the service could not read, in its words, if it reports them. */
  readonly warning: string | undefined;
  /** The resource as stored, as far as the answer shows it. */
  readonly record: AnsweredRecord;
}

/** The fields of a resource that an answer shows; others are empty or absent. */
export type AnsweredRecord = {
  readonly [F in "title" | "description" | "content" | "url" | "updatedAt" | "metadata"]?:
    | ResourceRecord[F]
    | undefined;
};

/** Longest warning that is stored. It names a few pages. */
const WARNING_CHARS_MAX = 2000;

/** The service's report on parts of a document that it could not read. */
export function warningOf({ metadata }: Pick<ResourceRecord, "metadata">): string | undefined {
  return metadata?.warning?.slice(0, WARNING_CHARS_MAX);
}

export interface UploadSource extends FileLocation {
  readonly name: string;
  readonly sizeBytes: number;
  readonly hash: string;
  readonly mediaType: string;
}

export interface SearchQuery {
  readonly query: string;
  readonly topK: number;
  /** Conditions on the metadata of documents; a service without filters ignores them. */
  readonly filter?: object | undefined;
  /** How much the results say; a service without these additions ignores them. */
  readonly context?: SearchContext | undefined;
  /** Asks for a fresh answer, and waits so long at most. Default: does not wait. A service without receipts ignores it. */
  readonly waitSeconds?: number | undefined;
  readonly where: { readonly docId: string } | { readonly collectionId: string; readonly ownerId: string };
}

/**
 * The operations of the service. Each passes the pacer's gate and makes one attempt; retries are up to the caller. They
 * throw only the signal's reason and what the gate throws.
 */
export interface Remote extends ResourceRequests, FileRequests, CollectionRequests {
  search(query: SearchQuery, signal: AbortSignal): Promise<Reply<SearchAnswer>>;
  close(): Promise<void>;
}

/** Requests about one resource. */
export interface ResourceRequests {
  create(
    resource: NewResource,
    key: string,
    signal: AbortSignal,
    mayLeave?: MayLeave,
  ): Promise<Reply<ResourceRecord & Taken>>;
  /** With the `key` of an earlier attempt, the service carries out the update once. */
  update(
    docId: string,
    change: ResourceChange,
    signal: AbortSignal,
    key?: string,
    mayLeave?: MayLeave,
  ): Promise<Reply<Taken>>;
  /** Returns the record of a resource. An addition, which comes with asynchronous answers; other services may lack it. */
  read(docId: string, signal: AbortSignal): Promise<Reply<ResourceRecord>>;
  delete(docId: string, signal: AbortSignal, mayLeave?: MayLeave): Promise<Reply<unknown>>;
  /**
   * Returns the whole record of a resource that is about to be deleted. In the specification, only the answers of update
   * and delete show a resource by its id, so this updates the resource to the title that it has.
   */
  take(docId: string, title: string, signal: AbortSignal): Promise<Reply<ResourceRecord>>;
}

/** Transfers of uploaded files. */
export interface FileRequests {
  /** Whether an address is at one of the service's hosts. A file that only the list names is fetched from no other host. */
  hostsFile(url: string): boolean;
  /** Fetches an uploaded file into a sink. */
  download(url: string, size: ExpectedSize, sink: Sink, signal: AbortSignal): Promise<Reply<undefined>>;
  /** `torn`: the file changed, or became unreadable, while it was sent. */
  upload(
    file: UploadSource,
    key: string,
    signal: AbortSignal,
  ): Promise<Reply<string> | { readonly kind: "torn" }>;
}

/** Requests about collections. */
export interface CollectionRequests {
  /**
   * Lists an owner's resources in a collection, in pages if the service has them. `onResource` may receive some resources
   * before a `later`. `isUnlimited` sends no limit, for services that truncate a list at the limit without notice.
   */
  list(
    at: { readonly collectionId: string; readonly ownerId: string; readonly isUnlimited?: boolean },
    onResource: (resource: ResourceRecord) => void,
    signal: AbortSignal,
  ): Promise<Reply<ListEnd>>;
  /** Number of pages of a collection's lists that the service has answered. Each proves that the collection exists. */
  listedPages(collectionId: string): number;
  /**
   * Ids of the collections by tier. `unsupported`: the service has no such list, as in the bare specification. `unclear`:
   * the answer may be another program's, such as a proxy's page with status 200.
   */
  collections(signal: AbortSignal): Promise<Reply<ReadonlyMap<Tier, string> | "unsupported" | "unclear">>;
}

/** What a client of a service needs. */
export interface RemoteOptions extends TransportOptions, CollectionOptions {}

/** What requests about collections need and report. */
export interface CollectionOptions extends Pick<TransportOptions, "now" | "onMoved"> {
  /** Called for each answer about the collections: what the service declares; undefined: it names no collections. */
  readonly onCapabilities?: (declared: DeclaredCapabilities | undefined) => void;
}

/** What a service offers beyond the specification. It declares it where it names its collections. */
export interface DeclaredCapabilities {
  /** It reads the PDFs and images of an uploaded mail. */
  readonly readsMails: boolean;
  readonly takesMetadata: boolean;
  readonly takesLocations: boolean;
}

/** The end of a list. */
export interface ListEnd {
  /** The service's clock minus ours. */
  readonly clockOffsetMs: number;
  /** The list had more than one page. */
  readonly isPaged: boolean;
}

/** Resources per page of the list. A service without pages ignores it. */
const PAGE_RESOURCES = 1000;
/** A list with more pages repeats itself. */
const LIST_PAGES_MAX = 100_000;
const APPLIED_HEADER = "preference-applied";
const ACCEPTED_STATUS = 202;

const RecordAnswer = z.object({ data: ResourceRecord });
const Done = z.object({});
/** Another service may answer a change without the record. */
const Changed = z.object({
  data: ResourceRecord.pick({
    title: true,
    description: true,
    content: true,
    updatedAt: true,
    metadata: true,
  })
    .partial()
    .catch({})
    .optional(),
});

/** Opens the client of a service. Sends nothing yet. */
export function openRemote(options: RemoteOptions): Remote {
  const hosts = openHosts(options);
  const transport = openTransport(options, hosts);
  const { attempt, send, json } = transport;
  const { now } = options;
  return {
    ...resourceRequests(transport, options),
    ...fileRequests(transport, hosts, options),
    ...collectionRequests(transport, options),

    search: ({ query, topK, filter, context, waitSeconds, where }, signal) =>
      attempt("search", signal, async () => {
        const scope =
          "docId" in where
            ? { doc_id: where.docId }
            : { collection_id: where.collectionId, owner_id: where.ownerId };
        const freshness = waitSeconds !== undefined && { freshness: "current", wait_seconds: waitSeconds };
        const body = JSON.stringify({ query, top_k: topK, filter, ...context, ...freshness, ...scope });
        const answer = await send("api", { method: "POST", path: ROUTES.query, headers: json, body }, signal);
        return readAnswer(answer, SearchAnswer, "resource", now());
      }),

    close: () => hosts.close(),
  };
}

function resourceRequests(
  { attempt, send, auth, json, patient }: Transport,
  { now }: Pick<TransportOptions, "now">,
): ResourceRequests {
  const record = async (request: ExchangeRequest, signal: AbortSignal): Promise<Reply<ResourceRecord>> => {
    const reply = readAnswer(await send("db", request, signal), RecordAnswer, "resource", now());
    return reply.kind === "done" ? { kind: "done", value: reply.value.data } : reply;
  };
  return {
    create: (resource, key, signal, mayLeave) =>
      attempt(
        "create",
        signal,
        async (pace) => {
          const { title, description, settings, tier, ownerId, metadata } = resource;
          const fields = {
            title,
            description,
            settings,
            collection_details: tier,
            owner_id: ownerId,
            ...(metadata !== undefined && { metadata }),
          };
          const { body: sent } = resource;
          const body =
            "url" in sent
              ? JSON.stringify({ ...fields, url: sent.url })
              : jsonWithText({ ...fields, locations: sent.locations }, "content", sent.content);
          const headers = { ...patient, [IDEMPOTENCY_HEADER]: key };
          const request = pace({ method: "POST", path: ROUTES.resource, headers, body });
          const answer = await send("db", request, signal);
          const reply = withKey(answer, readAnswer(answer, RecordAnswer, "address", now()));
          return reply.kind === "done"
            ? { kind: "done", value: { ...reply.value.data, ...takenOf(answer, reply.value.data) } }
            : reply;
        },
        { mayLeave, kind: "content" },
      ),

    update: (docId, change, signal, key, mayLeave) =>
      attempt(
        "update",
        signal,
        async (pace) => {
          const path = pathOf(docId);
          const { content, ...fields } = change;
          const body =
            content === undefined ? JSON.stringify(fields) : jsonWithText(fields, "content", content);
          const headers = key === undefined ? patient : { ...patient, [IDEMPOTENCY_HEADER]: key };
          const answer = await send("db", pace({ method: "PUT", path, headers, body }), signal);
          const reply = withKey(answer, readAnswer(answer, Changed, "resource", now()));
          return reply.kind === "done"
            ? { kind: "done", value: takenOf(answer, reply.value.data ?? {}) }
            : reply;
        },
        { mayLeave, kind: change.content === undefined && change.url === undefined ? "control" : "content" },
      ),

    read: (docId, signal) =>
      attempt("read", signal, () => record({ method: "GET", path: pathOf(docId), headers: auth }, signal)),

    delete: (docId, signal, mayLeave) =>
      attempt(
        "delete",
        signal,
        async () => {
          const path = pathOf(docId);
          const answer = await send("db", { method: "DELETE", path, headers: auth }, signal);
          return readAnswer(answer, Done, "resource", now());
        },
        { mayLeave },
      ),

    take: (docId, title, signal) =>
      attempt("take", signal, () => {
        const body = JSON.stringify({ title });
        return record({ method: "PUT", path: pathOf(docId), headers: json, body }, signal);
      }),
  };
}

function fileRequests(
  { attempt, send, auth }: Transport,
  hosts: Hosts,
  { address, now }: Pick<TransportOptions, "address" | "now">,
): FileRequests {
  return {
    hostsFile: hosts.isOurs,

    download: (url, size, sink, signal) =>
      attempt("download", signal, async () => {
        const {
          href,
          origin,
          pathname,
          search: query,
        } = fileAddress(url, address.resourcesUrl ?? address.apiUrl, address.filesAt);
        const isOurs = hosts.isOurs(href);
        const headers: Record<string, string> = isOurs ? { [KEY_HEADER]: address.pauthkey } : {};
        const request = { path: `${pathname}${query}`, headers, signal };
        try {
          return await download(hosts.at(origin).pool, request, size, sink, now());
        } catch (error) {
          // Another host that does not answer does not make the service unreachable.
          if (isOurs || !NOT_SENT.has(codeOf(error) ?? "")) throw error;
          return { kind: "refused", code: codeOf(error) ?? "", message: messageOf(error) };
        }
      }),

    upload: async (file, key, signal) => {
      try {
        return await attempt(
          "upload",
          signal,
          async (pace) => {
            const form = uploadBody(file, file.mediaType);
            const headers = {
              ...auth,
              [IDEMPOTENCY_HEADER]: key,
              "content-type": form.contentType,
              "content-length": String(form.contentLength),
            };
            const path = ROUTES.upload;
            // The pool accepts any iterable as a body; its types allow streams only.
            const body = form.chunks as never;
            const answer = await send("api", pace({ method: "POST", path, headers, body }), signal);
            const reply = withKey(answer, readAnswer(answer, UploadAnswer, "address", now()));
            return reply.kind === "done" ? { kind: "done" as const, value: reply.value.file_url } : reply;
          },
          { kind: "content" },
        );
      } catch (error) {
        if (error instanceof TornFile) return { kind: "torn" };
        throw error;
      }
    },
  };
}

function collectionRequests(
  { attempt, send, db, auth, noteClock }: Transport,
  { now, onMoved = () => undefined, onCapabilities = () => undefined }: CollectionOptions,
): CollectionRequests {
  const listedPages = new Map<string, number>();
  return {
    list: async ({ collectionId, ownerId, isUnlimited = false }, onResource, signal) => {
      const query = new URLSearchParams({ collectionId, ownerId });
      if (!isUnlimited) query.set("limit", String(PAGE_RESOURCES));
      const host = { connections: db.pool, prefix: db.prefix, headers: auth };
      let clockOffsetMs: number | undefined;
      const onListed = (resource: ResourceRecord): void => {
        onMoved();
        onResource(resource);
      };
      for (let pages = 0; pages < LIST_PAGES_MAX; pages += 1) {
        const reply = await attempt("list", signal, () => readPage(host, query, onListed, now, signal));
        if (reply.kind === "refused" && query.has("limit") && !query.has("cursor")) {
          query.delete("limit"); // A service may refuse a parameter that it does not know.
          continue;
        }
        if (reply.kind !== "done") return reply;
        noteClock(reply.value.clockOffsetMs);
        listedPages.set(collectionId, 1 + (listedPages.get(collectionId) ?? 0));
        // The clock of the first answer: the list contains everything created before it.
        clockOffsetMs ??= reply.value.clockOffsetMs;
        if (reply.value.nextCursor === undefined)
          return { kind: "done", value: { clockOffsetMs, isPaged: pages > 0 } };
        query.set("cursor", reply.value.nextCursor);
      }
      return unexpected(`the list has more than ${LIST_PAGES_MAX} pages`);
    },

    listedPages: (collectionId) => listedPages.get(collectionId) ?? 0,

    collections: (signal) =>
      attempt("collections", signal, async () => {
        const answer = await send("db", { method: "GET", path: ROUTES.collections, headers: auth }, signal);
        // An addition: a service without it answers like for any unknown address.
        if (answer.status >= 400 && answer.status < 500 && ![401, 403, 408, 429].includes(answer.status)) {
          onCapabilities(undefined);
          return { kind: "done", value: "unsupported" };
        }
        const reply = readAnswer(answer, CollectionsAnswer, "address", now());
        if (reply.kind === "refused") return { kind: "done", value: "unsupported" };
        // A web application answers every address with its page, and so does a proxy while its service is down.
        if (reply.kind !== "done") return answer.status < 400 ? { kind: "done", value: "unclear" } : reply;
        const { collections, reads = [], locations = false, metadata = false } = reply.value.data;
        onCapabilities({
          readsMails: reads.includes(MAIL_TYPE),
          takesMetadata: metadata,
          takesLocations: locations,
        });
        const ids = collections.map(({ _id, details }) => [details, _id] as const);
        return { kind: "done", value: new Map(ids) };
      }),
  };
}

function pathOf(docId: string): string {
  return `${ROUTES.resource}/${encodeURIComponent(docId)}`;
}

/**
 * Only a service that honours the preference shows whether it is done: in a header, which a proxy may drop, or in the
 * record's state.
 */
function takenOf(answer: RawAnswer, record: AnsweredRecord): Taken {
  const applied = header(answer, APPLIED_HEADER) ?? "";
  const isAsync = /(^|[\s,])respond-async\b/i.test(applied) || record.metadata?.status === "queued";
  const isInFlight = answer.status === ACCEPTED_STATUS && isAsync;
  return { isInFlight, warning: warningOf(record), record };
}
