import { Pool, type Dispatcher } from "undici";
import { z } from "zod";
import { codeOf, messageOf } from "../../lib/failure.ts";
import type { Settings, Tier } from "../../wire/primitives.ts";
import { CollectionsAnswer, ResourceRecord } from "../../wire/resource.ts";
import { IDEMPOTENCY_HEADER, KEY_HEADER, ROUTES } from "../../wire/routes.ts";
import { SearchAnswer } from "../../wire/search.ts";
import { UploadAnswer } from "../../wire/upload.ts";
import { jsonWithText, type SentText } from "../document/json-text.ts";
import type { FilePlace } from "../disk/place.ts";
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

/** Addresses of a service and the key for it. */
export interface ServiceAddress {
  readonly apiUrl: string;
  readonly dbUrl: string;
  /** Host of uploaded files, where it is another one: the key is sent to these three alone. */
  readonly resourcesUrl?: string;
  /** Where files under `resourcesUrl` are asked for. Default: there; another where that is an address for others. */
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
  readonly body: { readonly content: SentText } | { readonly url: string };
}

/** What an update sends: only what is given changes. */
export interface ResourceChange {
  readonly title: string;
  readonly description?: string;
  readonly content?: SentText;
  readonly url?: string;
}

/** How far the service is with what it took. */
export interface Taken {
  /** It has it durably and works on it still: the state of the resource tells the end. */
  readonly isUnderWay: boolean;
  /** What of the document it could not read, in its words, as far as it tells. */
  readonly warning: string | undefined;
  /** What its answer shows of the resource as it stored it. */
  readonly record: AnsweredRecord;
}

/** What an answer shows of a resource; what it does not show is empty or left out. */
export type AnsweredRecord = {
  readonly [F in "title" | "description" | "content" | "url" | "updatedAt" | "metadata"]?:
    | ResourceRecord[F]
    | undefined;
};

/** Longest warning that is kept: it names pages, of which it names a few. */
const WARNING_CHARS_MAX = 2000;

/** What of a resource's document the service could not read. */
export function warningOf({ metadata }: Pick<ResourceRecord, "metadata">): string | undefined {
  return metadata?.warning?.slice(0, WARNING_CHARS_MAX);
}

export interface UploadSource extends FilePlace {
  readonly name: string;
  readonly sizeBytes: number;
  readonly hash: string;
  readonly mediaType: string;
}

export interface SearchQuery {
  readonly query: string;
  readonly topK: number;
  readonly where: { readonly docId: string } | { readonly collectionId: string; readonly ownerId: string };
}

/** Asked after the gate, where a request may have waited for hours: whether it is still wanted. */
export type MayLeave = () => boolean;

/**
 * The operations of the service. Each passes the pacer's gate, makes one attempt and tells what came of it; nothing is
 * tried again here. They throw only the signal's reason and what the gate throws.
 */
export interface Remote {
  create(
    resource: NewResource,
    key: string,
    signal: AbortSignal,
    mayLeave?: MayLeave,
  ): Promise<Reply<ResourceRecord & Taken>>;
  /** Under a `key` that a former attempt had, the service does it once. */
  update(
    docId: string,
    change: ResourceChange,
    signal: AbortSignal,
    key?: string,
    mayLeave?: MayLeave,
  ): Promise<Reply<Taken>>;
  /** The record of a resource, where the service shows one: an addition, which goes with answers before the work. */
  read(docId: string, signal: AbortSignal): Promise<Reply<ResourceRecord>>;
  delete(docId: string, signal: AbortSignal, mayLeave?: MayLeave): Promise<Reply<unknown>>;
  /**
   * The whole record of a resource that is about to be deleted. The specification shows one by its id in the answers of
   * update and delete alone, so this updates it, to the title that it has.
   */
  take(docId: string, title: string, signal: AbortSignal): Promise<Reply<ResourceRecord>>;
  /** Whether an address lies at one of the service's hosts; no other is ever asked for a file that nothing but the list names. */
  hostsFile(url: string): boolean;
  /** Fetches an uploaded file into a sink. */
  download(url: string, sizeBytes: number, sink: Sink, signal: AbortSignal): Promise<Reply<undefined>>;
  /** `torn`: the file changed, or could not be read any more, while it was sent. */
  upload(
    file: UploadSource,
    key: string,
    signal: AbortSignal,
  ): Promise<Reply<string> | { readonly kind: "torn" }>;
  /**
   * Lists an owner's resources of a collection, in pages where the service has them. `onResource` may see some of them
   * before a `later`. `isUnlimited` names no limit, where the service may cut a list off at one without a word.
   */
  list(
    at: { readonly collectionId: string; readonly ownerId: string; readonly isUnlimited?: boolean },
    onResource: (resource: ResourceRecord) => void,
    signal: AbortSignal,
  ): Promise<Reply<ListEnd>>;
  /** How many pages of a collection's lists the service has answered: each proves that the collection exists. */
  listedPages(collectionId: string): number;
  /**
   * Ids of the collections by tier. `untold`: the service has no such list, as by the bare specification. `unclear`: the
   * answer may be somebody else's, such as a proxy's page with status 200.
   */
  collections(signal: AbortSignal): Promise<Reply<ReadonlyMap<Tier, string> | "untold" | "unclear">>;
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
  /** Whether nothing that changes the service may leave for now of who uses this signal. */
  readonly isHeld?: (signal: AbortSignal) => boolean;
  /** Told before a request leaves and after its answer came; may throw to simulate a crash. */
  readonly step?: (name: string) => void;
  /** Hears what came of each request, and how long it took. */
  readonly onRequest?: DaemonObserver["request"] | undefined;
  /**
   * Notified of the end of each request, also of one that nobody answered in time, and of each resource of a list as it comes:
   * a service that takes long over a document is no daemon that hangs.
   */
  readonly onMoved?: () => void;
  /** Told by the first answer with a time what the service's clock is minus ours. */
  readonly onClock?: (offsetMs: number) => void;
  /** Told by each answer about the collections which media types the service reads beyond those of the specification. */
  readonly onReads?: (mediaTypes: readonly string[]) => void;
  /** Default: `connectPool`. */
  readonly connect?: Connect;
}

/** How a list ended. */
export interface ListEnd {
  /** The service's clock minus ours. */
  readonly clockOffsetMs: number;
  /** It came in more than one page. */
  readonly isPaged: boolean;
}

/** Opens the connections to one host, by its origin. */
export type Connect = (origin: string, limits: Pool.Options) => Dispatcher;

/** Connections over TCP, kept open between requests. */
export const connectPool: Connect = (origin, limits) => new Pool(origin, limits);

/** Resources a page of the list; a service without pages ignores it. */
const PAGE_RESOURCES = 1000;
/** A list of more pages goes in a ring. */
const LIST_PAGES_MAX = 100_000;
/** Failures before the request was written: the service cannot have acted on it. */
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
 * A scan takes the service minutes, and any document does where many wait for one embedder: it may answer before, and a
 * service that does not know this header answers after it as ever (RFC 7240, 2). What is done within the wait costs no second
 * question; a longer one would hold a slot of the queue for work that waits.
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

/** Requests that change something at the service. What became of one may be asked whenever. */
const CHANGES = new Set(["create", "update", "delete", "take", "upload"]);
const HELD: Later = { kind: "later", acted: "no", blame: "service", reason: "paused", isPaused: true };
const GIVEN_UP: Later = { kind: "later", acted: "no", blame: "service", reason: "no longer wanted" };

/** Opens the connection to a service. Nothing is sent yet. */
export function openRemote({
  address,
  pacer,
  connections,
  timeoutMs,
  now,
  isHeld,
  step,
  onRequest,
  onMoved = () => undefined,
  onClock = () => undefined,
  onReads = () => undefined,
  connect = connectPool,
}: RemoteOptions): Remote {
  const told = step ?? (() => undefined);
  const pools = new Map<string, Dispatcher>();
  const poolOf = (base: string): { pool: Dispatcher; prefix: string } => {
    const { origin, pathname } = new URL(base);
    let pool = pools.get(origin);
    if (pool === undefined) {
      // A connection that the service is about to close is not used again: a request on it would end in doubt.
      const timeouts = { headersTimeout: timeoutMs, bodyTimeout: timeoutMs, keepAliveTimeoutThreshold: 2000 };
      pool = connect(origin, { connections, ...timeouts });
      pools.set(origin, pool);
    }
    return { pool, prefix: pathname === "/" ? "" : pathname.replace(/\/$/, "") };
  };
  const api = poolOf(address.apiUrl);
  const db = poolOf(address.dbUrl);
  const hosts = (url: string): boolean =>
    URL.canParse(url) &&
    [address.apiUrl, address.dbUrl, address.resourcesUrl ?? address.apiUrl].some(
      (own) => new URL(own).origin === new URL(url).origin,
    );
  const auth = { [KEY_HEADER]: address.pauthkey, accept: "application/json" };
  const json = { ...auth, "content-type": "application/json" };
  const waitSeconds = Math.floor(Math.min(PREFER_WAIT_MS_MAX, timeoutMs / 2) / 1000);
  const patient = { ...json, [PREFER_HEADER]: `respond-async, wait=${waitSeconds}` };

  /** Passes the gate, makes one attempt, and tells the gate how it went. */
  const attempt = async <R extends Reply<unknown>>(
    name: string,
    signal: AbortSignal,
    ask: () => Promise<R>,
    mayLeave?: MayLeave,
  ): Promise<R | Later> => {
    const ticket = await pacer.enter(signal);
    // Asked after the gate: what waited there while its source was paused must not leave either.
    if (CHANGES.has(name) && isHeld?.(signal) === true) {
      pacer.left(ticket);
      return HELD;
    }
    if (mayLeave?.() === false) {
      pacer.left(ticket);
      return GIVEN_UP;
    }
    told(name);
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
    told(`${name}:answered`);
    if (reply.kind === "later" && reply.isUnderWay !== true) pacer.failed(ticket, reply);
    else pacer.succeeded(ticket);
    return reply;
  };

  const listedPages = new Map<string, number>();
  let isClockKnown = false;
  const send = async (
    to: { pool: Dispatcher; prefix: string },
    { path, ...request }: ExchangeRequest,
    signal: AbortSignal,
  ): Promise<RawAnswer> => {
    const answer = await exchange(to.pool, { ...request, path: to.prefix + path }, signal);
    const offsetMs = isClockKnown ? undefined : clockOffsetOf(answer, now());
    if (offsetMs !== undefined) {
      isClockKnown = true;
      onClock(offsetMs);
    }
    return answer;
  };

  return {
    create: (resource, key, signal, mayLeave) =>
      attempt(
        "create",
        signal,
        async () => {
          const { title, description, settings, tier, ownerId } = resource;
          const fields = { title, description, settings, collection_details: tier, owner_id: ownerId };
          const body =
            "url" in resource.body
              ? JSON.stringify({ ...fields, url: resource.body.url })
              : jsonWithText(fields, "content", resource.body.content);
          const headers = { ...patient, [IDEMPOTENCY_HEADER]: key };
          const answer = await send(db, { method: "POST", path: ROUTES.resource, headers, body }, signal);
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
          const path = `${ROUTES.resource}/${encodeURIComponent(docId)}`;
          const { content, ...fields } = change;
          const body =
            content === undefined ? JSON.stringify(fields) : jsonWithText(fields, "content", content);
          const headers = key === undefined ? patient : { ...patient, [IDEMPOTENCY_HEADER]: key };
          const answer = await send(db, { method: "PUT", path, headers, body }, signal);
          const reply = withKey(answer, readAnswer(answer, Changed, "resource", now()));
          return reply.kind === "done"
            ? { kind: "done", value: takenOf(answer, reply.value.data ?? {}) }
            : reply;
        },
        mayLeave,
      ),

    read: (docId, signal) =>
      attempt("read", signal, async () => {
        const path = `${ROUTES.resource}/${encodeURIComponent(docId)}`;
        const answer = await send(db, { method: "GET", path, headers: auth }, signal);
        const reply = readAnswer(answer, RecordAnswer, "resource", now());
        return reply.kind === "done" ? { kind: "done", value: reply.value.data } : reply;
      }),

    delete: (docId, signal, mayLeave) =>
      attempt(
        "delete",
        signal,
        async () => {
          const path = `${ROUTES.resource}/${encodeURIComponent(docId)}`;
          const answer = await send(db, { method: "DELETE", path, headers: auth }, signal);
          return readAnswer(answer, Done, "resource", now());
        },
        mayLeave,
      ),

    take: (docId, title, signal) =>
      attempt("take", signal, async () => {
        const path = `${ROUTES.resource}/${encodeURIComponent(docId)}`;
        const body = JSON.stringify({ title });
        const answer = await send(db, { method: "PUT", path, headers: json, body }, signal);
        const reply = readAnswer(answer, RecordAnswer, "resource", now());
        return reply.kind === "done" ? { kind: "done", value: reply.value.data } : reply;
      }),

    hostsFile: hosts,

    download: (url, sizeBytes, sink, signal) =>
      attempt("download", signal, async () => {
        const {
          href,
          origin,
          pathname,
          search: query,
        } = fileAddress(url, address.resourcesUrl ?? address.apiUrl, address.filesAt);
        const isOurs = hosts(href);
        const headers: Record<string, string> = isOurs ? { [KEY_HEADER]: address.pauthkey } : {};
        const request = { path: `${pathname}${query}`, headers, signal };
        try {
          return await download(poolOf(origin).pool, request, sizeBytes, sink, now());
        } catch (error) {
          // Another host that does not answer is no reason to take the service for absent.
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
          // The connections take any iterable for a body; their types name streams alone.
          const body = form.chunks as never;
          const answer = await send(api, { method: "POST", path, headers, body }, signal);
          const reply = withKey(answer, readAnswer(answer, UploadAnswer, "address", now()));
          return reply.kind === "done" ? { kind: "done" as const, value: reply.value.file_url } : reply;
        });
      } catch (error) {
        if (error instanceof TornFile) return { kind: "torn" };
        throw error;
      }
    },

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
          query.delete("limit"); // A service may refuse what it does not know.
          continue;
        }
        if (reply.kind !== "done") return reply;
        listedPages.set(collectionId, 1 + (listedPages.get(collectionId) ?? 0));
        // The first answer's clock: what was made before the list began is in it.
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
        const answer = await send(db, { method: "GET", path: ROUTES.collections, headers: auth }, signal);
        // An addition of ours: a service without it answers as it answers any unknown address.
        if (answer.status >= 400 && answer.status < 500 && ![401, 403, 408, 429].includes(answer.status)) {
          onReads([]);
          return { kind: "done", value: "untold" };
        }
        const reply = readAnswer(answer, CollectionsAnswer, "address", now());
        if (reply.kind === "refused") return { kind: "done", value: "untold" };
        // A web application answers every address with its page, a proxy every request while its service is away.
        if (reply.kind !== "done") return answer.status < 400 ? { kind: "done", value: "unclear" } : reply;
        onReads(reply.value.data.reads ?? []);
        const ids = reply.value.data.collections.map(({ _id, details }) => [details, _id] as const);
        return { kind: "done", value: new Map(ids) };
      }),

    search: ({ query, topK, where }, signal) =>
      attempt("search", signal, async () => {
        const scope =
          "docId" in where
            ? { doc_id: where.docId }
            : { collection_id: where.collectionId, owner_id: where.ownerId };
        const body = JSON.stringify({ query, top_k: topK, ...scope });
        const answer = await send(api, { method: "POST", path: ROUTES.query, headers: json, body }, signal);
        return readAnswer(answer, SearchAnswer, "resource", now());
      }),

    close: async () => {
      await Promise.all([...pools.values()].map((pool) => pool.destroy()));
    },
  };
}

/**
 * Only a service that follows the preference shows how far it is: it says so in a header, which a proxy may drop, or by the
 * record's state.
 */
function takenOf(answer: RawAnswer, record: AnsweredRecord): Taken {
  const applied = header(answer, APPLIED_HEADER) ?? "";
  const isAsync = /(^|[\s,])respond-async\b/i.test(applied) || record.metadata?.status === "queued";
  const isUnderWay = answer.status === ACCEPTED_STATUS && isAsync;
  return { isUnderWay, warning: warningOf(record), record };
}
