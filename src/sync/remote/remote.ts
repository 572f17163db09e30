import { Pool, type Dispatcher } from "undici";
import { z } from "zod";
import { codeOf, messageOf } from "../../lib/failure.ts";
import { MAIL_TYPE } from "../../wire/constants.ts";
import type { LocatedText } from "../../lib/markup/located-text.ts";
import type { Settings, Tier } from "../../wire/primitives.ts";
import type { UserMetadata } from "../../wire/metadata.ts";
import { CollectionsAnswer, ResourceRecord } from "../../wire/resource.ts";
import { IDEMPOTENCY_HEADER, KEY_HEADER, ROUTES } from "../../wire/routes.ts";
import { SearchAnswer } from "../../wire/search.ts";
import { UploadAnswer } from "../../wire/upload.ts";
import { jsonWithText, type SentText } from "../document/json-text.ts";
import type { FileLocation } from "../disk/file-location.ts";
import { outcomeOf, type DaemonObserver } from "./observer.ts";
import {
  clockOffsetOf,
  header,
  readAnswer,
  withKey,
  type Later,
  type RawAnswer,
  type Reply,
} from "./answer.ts";
import { download, fileAddress, type Sink } from "./download.ts";
import { exchange, type ExchangeRequest } from "./exchange.ts";
import { readPage, unexpected } from "./list-page.ts";
import { TornFile, uploadBody } from "./multipart.ts";
import type { Pacer } from "./pacer.ts";

/** Addresses of a service and its key. */
export interface ServiceAddress {
  readonly apiUrl: string;
  readonly dbUrl: string;
  /** Host of uploaded files, if it is another one. The key is sent to these three hosts only. */
  readonly resourcesUrl?: string;
  /**
   * Where to fetch files under `resourcesUrl`, if that is a public address that this process cannot use. Default:
   * `resourcesUrl`.
   */
  readonly filesAt?: string;
  readonly pauthkey: string;
}

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
  readonly where: { readonly docId: string } | { readonly collectionId: string; readonly ownerId: string };
}

/** Called when a request passes the gate, where it may have waited for hours: whether it is still wanted. */
export type MayLeave = () => boolean;

/**
 * The operations of the service. Each passes the pacer's gate and makes one attempt; retries are up to the caller. They
 * throw only the signal's reason and what the gate throws.
 */
export interface Remote {
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
  /** Whether an address is at one of the service's hosts. A file that only the list names is fetched from no other host. */
  hostsFile(url: string): boolean;
  /** Fetches an uploaded file into a sink. */
  download(url: string, sizeBytes: number, sink: Sink, signal: AbortSignal): Promise<Reply<undefined>>;
  /** `torn`: the file changed, or became unreadable, while it was sent. */
  upload(
    file: UploadSource,
    key: string,
    signal: AbortSignal,
  ): Promise<Reply<string> | { readonly kind: "torn" }>;
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
  search(query: SearchQuery, signal: AbortSignal): Promise<Reply<SearchAnswer>>;
  close(): Promise<void>;
}

export interface RemoteOptions {
  readonly address: ServiceAddress;
  readonly pacer: Pacer;
  /** Connections to each host at most. */
  readonly connections: number;
  readonly timeoutMs: number;
  readonly now: () => number;
  /** Whether changes that belong to this signal are suspended. */
  readonly isHeld?: (signal: AbortSignal) => boolean;
  /** Called before a request leaves and after its answer arrives; may throw to simulate a crash. */
  readonly step?: (name: string) => void;
  /** Called with the outcome and the duration of each request. */
  readonly onRequest?: DaemonObserver["request"] | undefined;
  /**
   * Called at the end of each request, including timeouts, and for each resource of a list as it arrives: a service that
   * takes long over a document does not count as a hang of the daemon.
   */
  readonly onMoved?: () => void;
  /** Called with the service's clock minus ours: for the first answer with a date, and when one of the clocks was set. */
  readonly onClock?: (offsetMs: number) => void;
  /** Called for each answer about the collections: what the service declares; undefined: it names no collections. */
  readonly onCapabilities?: (declared: DeclaredCapabilities | undefined) => void;
  /** Default: `connectPool`. */
  readonly connect?: Connect;
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

/** Opens the connections to one host, by its origin. */
export type Connect = (origin: string, limits: Pool.Options) => Dispatcher;

/** Connections over TCP, kept open between requests. */
export const connectPool: Connect = (origin, limits) => new Pool(origin, limits);

/** Change of the clock offset that is worth reporting: the service reports its time in whole seconds. */
const CLOCK_STEP_MS = 2000;
/** Resources per page of the list. A service without pages ignores it. */
const PAGE_RESOURCES = 1000;
/** A list with more pages repeats itself. */
const LIST_PAGES_MAX = 100_000;
/** Errors that occur before the request is written: the service cannot have acted on it. */
const NOT_SENT = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EADDRNOTAVAIL",
  "UND_ERR_CONNECT_TIMEOUT",
  "ERR_TLS_CERT_ALTNAME_INVALID",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "CERT_HAS_EXPIRED",
]);

/**
 * A scanned document takes the service minutes, and so does any document while many wait for one embedder. A service that
 * knows this header may answer earlier; others ignore it (RFC 7240, 2). Work that ends within the wait needs no second
 * request; a longer wait would block a slot of the queue.
 */
const PREFER_HEADER = "prefer";
const PREFER_WAIT_MS_MAX = 2000;
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

/** Requests that change the service. Other requests may leave at any time. */
const CHANGES = new Set(["create", "update", "delete", "take", "upload"]);
const PAUSED: Later = { kind: "later", acted: "no", blame: "service", reason: "paused", isPaused: true };
const UNWANTED: Later = { kind: "later", acted: "no", blame: "service", reason: "no longer wanted" };

/** Opens the client of a service. Sends nothing yet. */
export function openRemote(options: RemoteOptions): Remote {
  const hosts = openHosts(options);
  const transport = openTransport(options, hosts);
  const { attempt, send, json } = transport;
  const { now } = options;
  return {
    ...resourceRequests(transport, options),
    ...fileRequests(transport, hosts, options),
    ...listRequests(transport, options),

    search: ({ query, topK, filter, where }, signal) =>
      attempt("search", signal, async () => {
        const scope =
          "docId" in where
            ? { doc_id: where.docId }
            : { collection_id: where.collectionId, owner_id: where.ownerId };
        const body = JSON.stringify({ query, top_k: topK, filter, ...scope });
        const answer = await send("api", { method: "POST", path: ROUTES.query, headers: json, body }, signal);
        return readAnswer(answer, SearchAnswer, "resource", now());
      }),

    close: () => hosts.close(),
  };
}

/** A host of the service, and the path of its address. */
interface Host {
  readonly pool: Dispatcher;
  readonly prefix: string;
}

/** The connections to the service's hosts. */
interface Hosts {
  readonly api: Host;
  readonly db: Host;
  readonly at: (base: string) => Host;
  /** Reports whether an address is at one of them. */
  readonly isOurs: (url: string) => boolean;
  readonly close: () => Promise<void>;
}

function openHosts({ address, connections, timeoutMs, connect = connectPool }: RemoteOptions): Hosts {
  const pools = new Map<string, Dispatcher>();
  const at = (base: string): Host => {
    const { origin, pathname } = new URL(base);
    let pool = pools.get(origin);
    if (pool === undefined) {
      // Avoids connections that the service is about to close: a request on one would end in doubt.
      const timeouts = { headersTimeout: timeoutMs, bodyTimeout: timeoutMs, keepAliveTimeoutThreshold: 2000 };
      pool = connect(origin, { connections, ...timeouts });
      pools.set(origin, pool);
    }
    return { pool, prefix: pathname === "/" ? "" : pathname.replace(/\/$/, "") };
  };
  const own = [address.apiUrl, address.dbUrl, address.resourcesUrl ?? address.apiUrl];
  return {
    api: at(address.apiUrl),
    db: at(address.dbUrl),
    at,
    isOurs: (url) => URL.canParse(url) && own.some((each) => new URL(each).origin === new URL(url).origin),
    close: async () => {
      await Promise.all([...pools.values()].map((pool) => pool.destroy()));
    },
  };
}

type Headers = Readonly<Record<string, string>>;

/** Sends requests and reports their results. */
interface Transport {
  readonly db: Host;
  /** Headers with the key; `json` for a body of JSON; `patient` for one that may be answered before its work is done. */
  readonly auth: Headers;
  readonly json: Headers;
  readonly patient: Headers;
  /** Passes the gate, makes one attempt and reports its result to the gate. */
  readonly attempt: <R extends Reply<unknown>>(
    name: string,
    signal: AbortSignal,
    ask: () => Promise<R>,
    mayLeave?: MayLeave,
  ) => Promise<R | Later>;
  readonly send: (to: "api" | "db", request: ExchangeRequest, signal: AbortSignal) => Promise<RawAnswer>;
  readonly noteClock: (offsetMs: number | undefined) => void;
}

function openTransport(options: RemoteOptions, hosts: Hosts): Transport {
  const { address, timeoutMs, now, onClock = () => undefined } = options;
  const auth = { [KEY_HEADER]: address.pauthkey, accept: "application/json" };
  const json = { ...auth, "content-type": "application/json" };
  const waitSeconds = Math.floor(Math.min(PREFER_WAIT_MS_MAX, timeoutMs / 2) / 1000);
  let notedOffsetMs = Infinity;
  const noteClock = (offsetMs: number | undefined): void => {
    if (offsetMs === undefined || Math.abs(offsetMs - notedOffsetMs) <= CLOCK_STEP_MS) return;
    notedOffsetMs = offsetMs;
    onClock(offsetMs);
  };
  return {
    db: hosts.db,
    auth,
    json,
    patient: { ...json, [PREFER_HEADER]: `respond-async, wait=${waitSeconds}` },
    attempt: openAttempts(options),
    send: async (to, { path, ...request }, signal) => {
      const { pool, prefix } = hosts[to];
      const answer = await exchange(pool, { ...request, path: prefix + path }, signal);
      noteClock(clockOffsetOf(answer, now()));
      return answer;
    },
    noteClock,
  };
}

function openAttempts({
  pacer,
  isHeld,
  step: onStep = () => undefined,
  onRequest,
  onMoved = () => undefined,
}: RemoteOptions): Transport["attempt"] {
  return async <R extends Reply<unknown>>(
    name: string,
    signal: AbortSignal,
    ask: () => Promise<R>,
    mayLeave?: MayLeave,
  ): Promise<R | Later> => {
    const ticket = await pacer.enter(signal);
    // Checked after the gate: a request that waited there while its source was paused must not leave either.
    if (CHANGES.has(name) && isHeld?.(signal) === true) {
      pacer.left(ticket);
      return PAUSED;
    }
    if (mayLeave?.() === false) {
      pacer.left(ticket);
      return UNWANTED;
    }
    onStep(name);
    const startMs = performance.now();
    let reply: R | Later;
    try {
      reply = await ask();
    } catch (error) {
      if (signal.aborted || error instanceof TornFile) {
        pacer.left(ticket);
        throw error;
      }
      const code = codeOf(error) ?? "";
      reply = {
        kind: "later",
        acted: NOT_SENT.has(code) ? "no" : "maybe",
        blame: NOT_SENT.has(code) ? "service" : "request",
        unreached: NOT_SENT.has(code),
        reason: messageOf(error) || code,
      };
    }
    onMoved();
    onRequest?.(name, outcomeOf(reply), (performance.now() - startMs) / 1000);
    onStep(`${name}:answered`);
    if (reply.kind === "later" && reply.isInFlight !== true) pacer.failed(ticket, reply);
    else pacer.succeeded(ticket);
    return reply;
  };
}

/** Requests about one resource. */
function resourceRequests(
  { attempt, send, auth, json, patient }: Transport,
  { now }: RemoteOptions,
): Pick<Remote, "create" | "update" | "read" | "delete" | "take"> {
  const record = async (request: ExchangeRequest, signal: AbortSignal): Promise<Reply<ResourceRecord>> => {
    const reply = readAnswer(await send("db", request, signal), RecordAnswer, "resource", now());
    return reply.kind === "done" ? { kind: "done", value: reply.value.data } : reply;
  };
  return {
    create: (resource, key, signal, mayLeave) =>
      attempt(
        "create",
        signal,
        async () => {
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
          const answer = await send("db", { method: "POST", path: ROUTES.resource, headers, body }, signal);
          const reply = withKey(answer, readAnswer(answer, RecordAnswer, "address", now()));
          return reply.kind === "done"
            ? { kind: "done", value: { ...reply.value.data, ...takenOf(answer, reply.value.data) } }
            : reply;
        },
        mayLeave,
      ),

    update: (docId, change, signal, key, mayLeave) =>
      attempt(
        "update",
        signal,
        async () => {
          const path = pathOf(docId);
          const { content, ...fields } = change;
          const body =
            content === undefined ? JSON.stringify(fields) : jsonWithText(fields, "content", content);
          const headers = key === undefined ? patient : { ...patient, [IDEMPOTENCY_HEADER]: key };
          const answer = await send("db", { method: "PUT", path, headers, body }, signal);
          const reply = withKey(answer, readAnswer(answer, Changed, "resource", now()));
          return reply.kind === "done"
            ? { kind: "done", value: takenOf(answer, reply.value.data ?? {}) }
            : reply;
        },
        mayLeave,
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
        mayLeave,
      ),

    take: (docId, title, signal) =>
      attempt("take", signal, () => {
        const body = JSON.stringify({ title });
        return record({ method: "PUT", path: pathOf(docId), headers: json, body }, signal);
      }),
  };
}

/** Transfers of uploaded files. */
function fileRequests(
  { attempt, send, auth }: Transport,
  hosts: Hosts,
  { address, now }: RemoteOptions,
): Pick<Remote, "hostsFile" | "download" | "upload"> {
  return {
    hostsFile: hosts.isOurs,

    download: (url, sizeBytes, sink, signal) =>
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
          return await download(hosts.at(origin).pool, request, sizeBytes, sink, now());
        } catch (error) {
          // Another host that does not answer does not make the service unreachable.
          if (isOurs || !NOT_SENT.has(codeOf(error) ?? "")) throw error;
          return { kind: "refused", code: codeOf(error) ?? "", message: messageOf(error) };
        }
      }),

    upload: async (file, key, signal) => {
      try {
        return await attempt("upload", signal, async () => {
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
          const answer = await send("api", { method: "POST", path, headers, body }, signal);
          const reply = withKey(answer, readAnswer(answer, UploadAnswer, "address", now()));
          return reply.kind === "done" ? { kind: "done" as const, value: reply.value.file_url } : reply;
        });
      } catch (error) {
        if (error instanceof TornFile) return { kind: "torn" };
        throw error;
      }
    },
  };
}

/** Requests about collections. */
function listRequests(
  { attempt, send, db, auth, noteClock }: Transport,
  { now, onMoved = () => undefined, onCapabilities = () => undefined }: RemoteOptions,
): Pick<Remote, "list" | "listedPages" | "collections"> {
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
