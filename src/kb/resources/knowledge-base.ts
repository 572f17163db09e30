import type { Lane } from "../../lib/capped/pool.ts";
import type { Turns } from "../../lib/turns.ts";
import type { Tier } from "../../wire/primitives.ts";
import type { Fetcher } from "../fetch/fetcher.ts";
import type { Requester, WhileWaiting } from "../ingest/extract/extract.ts";
import type { Ingest } from "../ingest/ingest.ts";
import type { MailReader } from "../ingest/mail/mail-reader.ts";
import type { PageReader } from "../ingest/page/page-reader.ts";
import type { Model } from "../ingest/model.ts";
import type { Serving } from "../ingest/serving.ts";
import type { ModelTurns } from "../search/model-turns.ts";
import type { Reranker } from "../search/reranker.ts";
import type { Queue } from "../queue/queue.ts";
import type { Notices } from "../store/notices.ts";
import type { Index } from "../store/search-index.ts";
import type { Records } from "../store/records.ts";
import type { CollectionRecord } from "../store/resources.ts";
import type { FileAddresses } from "../uploads/file-address.ts";
import type { FileStore } from "../uploads/file-store.ts";
import type { Waits } from "../queue/waits.ts";
import type { Leases } from "../queue/leases.ts";
import type { SharedTurns } from "../queue/shared-turns.ts";
import type { CountPending } from "./pending.ts";

/** The dependencies of the operations. The service creates them once. */
export interface KnowledgeBase {
  readonly records: Records;
  readonly queue: Queue;
  readonly index: Index;
  /** Leaves nothing in the store's files of what was removed; see `Store.scrub`. */
  readonly scrub: (accountId: string) => Promise<void>;
  readonly ingest: Ingest;
  readonly model: Model;
  /** Returns the embedder that serves a scope: the model's, or an earlier one's while the new model's vectors are being made. */
  readonly embedderFor: Serving["embedderFor"];
  /** Undefined if none is configured: `high_accuracy` then reranks by sentences. */
  readonly reranker: Reranker | undefined;
  /** Counts the documents of a range that wait. */
  readonly pending: CountPending;
  /** Limits the calls of both models by searches, fairly among accounts. */
  readonly modelTurns: ModelTurns;
  readonly files: FileStore;
  readonly addresses: FileAddresses;
  /** Fetches links. */
  readonly fetcher: Fetcher;
  /** Extracts the text of web pages. */
  readonly pages: PageReader;
  /** Parses e-mails. */
  readonly mails: MailReader;
  /** Serialises changes of one resource: the last request wins. */
  readonly turns: Turns;
  /** Serialises work among the processes of the store. */
  readonly sharedTurns: SharedTurns;
  /** The leases of the jobs that this process works on. */
  readonly leases: Leases;
  /** Requests that wait for the end of a job of a resource (`jobKey`), or for it to be postponed. */
  readonly jobWaits: Waits;
  /** Requests that wait for changes of an account, by its id. */
  readonly changeWaits: Waits;
  /** Announces to the other processes on the store; undefined: there are none. */
  readonly notices: Notices | undefined;
  readonly collections: Collections;
  readonly limits: ContentLimits;
  /** Converts a failure into its answer. `retryAfterSeconds` is undefined if a retry cannot succeed by itself. */
  readonly explain: (error: unknown) => {
    /** A code of docs/API.md. */
    readonly code: string;
    readonly message: string;
    readonly hint?: string;
    readonly field?: string;
    readonly retryAfterSeconds: number | undefined;
  };
  /** Reports whether the service is ending, which may be the cause of a failure. */
  readonly isEnding: () => boolean;
  /** Where documents wait to be read. Default: `client`. */
  readonly lane?: Lane;
  /** Set for a queued job: `Requester.rank`. */
  readonly rank?: number;
  /** Set for a queued job: aborts when its lease has ended, because its document was changed again or deleted. */
  readonly signal?: AbortSignal;
  /** Set for a queued job: runs its waits. */
  readonly whileWaiting?: WhileWaiting;
  /** Set for a queued job: keeps the pages that were read for its next try. */
  readonly memoryOf?: Requester["memoryOf"];
  /** Set for a queued job: writes the part of its document that is read already. */
  readonly onPart?: Requester["onPart"];
  /** Set for a queued job: runs its fetch. */
  readonly whileFetching?: WhileFetching;
  readonly nowMs: () => number;
  /** A clock that is never set back. */
  readonly steadyMs: () => number;
  /** Reports the duration of each completed search. */
  readonly onSearched?: (tier: Tier, seconds: number) => void;
}

export interface ContentLimits {
  /** Longest text of a resource in bytes of UTF-8. */
  readonly contentBytes: number;
  /** Largest uploaded file in bytes. */
  readonly uploadBytes: number;
}

/** Runs the fetch of a queued document. A crash before `onBegin` does not count against the document. */
export type WhileFetching = <T>(fetch: (onBegin?: () => Promise<void>) => Promise<T>) => Promise<T>;

/** The collections of accounts by id. Ids and tiers never change, so one read for each account is enough. */
export interface Collections {
  /** Returns the tier of an account's collection; undefined if the account has no collection of that id. */
  tierOf(accountId: string, collectionId: string): Promise<Tier | undefined>;
}

/** Most accounts in the cache. A miss costs one read of the store. */
const CACHED_ACCOUNTS_MAX = 1000;

/** Caches the ids and tiers of `Records.collections`. */
export function cacheCollections(records: Pick<Records, "collections">): Collections {
  const cache = new Map<string, readonly Pick<CollectionRecord, "id" | "tier">[]>();
  return {
    tierOf: async (accountId, collectionId) => {
      let collections = cache.get(accountId);
      if (collections === undefined) {
        collections = await records.collections(accountId);
        if (cache.size >= CACHED_ACCOUNTS_MAX) cache.clear();
        cache.set(accountId, collections);
      }
      return collections.find(({ id }) => id === collectionId)?.tier;
    },
  };
}

/** Identifies the owner of a document. */
export interface OwnerKey {
  readonly accountId: string;
  readonly ownerId: string;
}

/** Returns the context of reading a document. Accounts, and the owners of each, share slow steps equally. */
export function requesterOf(
  { lane = "client", rank, signal, whileWaiting, memoryOf, onPart }: KnowledgeBase,
  { accountId, ownerId }: OwnerKey,
): Requester {
  return { tenant: [accountId, ownerId], lane, rank, signal, whileWaiting, memoryOf, onPart };
}

/** Returns the current time in the wire format. */
export function nowIso(kb: KnowledgeBase): string {
  return new Date(kb.nowMs()).toISOString();
}
