import type { Turns } from "../../lib/turns.ts";
import type { Tier } from "../../wire/primitives.ts";
import type { Fetcher } from "../fetch/fetcher.ts";
import type { Behalf, WhileWaiting } from "../ingest/extract/extract.ts";
import type { Ingest } from "../ingest/ingest.ts";
import type { MailReader } from "../ingest/mail/mail-reader.ts";
import type { PageReader } from "../ingest/page/page-reader.ts";
import type { Model } from "../ingest/model.ts";
import type { Serving } from "../ingest/serving.ts";
import type { Reranker } from "../search/reranker.ts";
import type { Store } from "../store/store.ts";
import type { CollectionRecord } from "../store/records.ts";
import type { FileAddresses } from "../uploads/file-address.ts";
import type { FileArea } from "../uploads/file-area.ts";
import type { JobCompletions } from "../queue/completions.ts";
import type { Leases } from "../queue/leases.ts";

/** The parts that the operations of the specification work on. Made once, by the service. */
export interface KnowledgeBase {
  readonly store: Store;
  readonly ingest: Ingest;
  readonly model: Model;
  /** The embedder whose vectors answer at a place: the model's, or an earlier one's while the model is being brought in. */
  readonly embedderFor: Serving["embedderFor"];
  /** Undefined where none is configured: `high_accuracy` reranks by sentences. */
  readonly reranker: Reranker | undefined;
  readonly files: FileArea;
  readonly addresses: FileAddresses;
  /** Fetches links. */
  readonly fetcher: Fetcher;
  /** Reads what pages say. */
  readonly pages: PageReader;
  /** Takes e-mails apart. */
  readonly mails: MailReader;
  /** Changes of one resource run one after another: the last to arrive wins. */
  readonly turns: Turns;
  /** The leases of the jobs that this process works on. */
  readonly leases: Leases;
  /** Tells of each job of the queue that ended. */
  readonly jobCompletions: JobCompletions;
  readonly collections: Collections;
  readonly limits: ContentLimits;
  /** A failure as its caller is told it, and after how long the same may succeed; undefined: not by itself. */
  readonly explain: (error: unknown) => {
    /** One of those in docs/API.md. */
    readonly code: string;
    readonly message: string;
    readonly hint?: string;
    readonly field?: string;
    readonly retryAfterSeconds: number | undefined;
  };
  /** The service is ending: what fails now may fail for that. */
  readonly isEnding: () => boolean;
  /** For a job of the queue: runs what it waits in. */
  readonly whileWaiting?: WhileWaiting;
  /** For a job of the queue: runs a fetch, which calls what it is given when it begins. */
  readonly whileFetching?: WhileFetching;
  readonly nowMs: () => number;
  /** A clock that is never set back, for waits. */
  readonly steadyMs: () => number;
  /** Notified how long each search took that was answered. */
  readonly onSearched?: (tier: Tier, seconds: number) => void;
}

export interface ContentLimits {
  /** Longest text of a resource in bytes of UTF-8. */
  readonly contentBytes: number;
  /** Largest uploaded file in bytes. */
  readonly uploadBytes: number;
}

/** Runs a fetch of a queued document. Until it has begun, a crash of the process is not this document's doing. */
export type WhileFetching = <T>(fetch: (onBegin?: () => Promise<void>) => Promise<T>) => Promise<T>;

/** An account's collections by id. Ids and tiers never change, so they are asked once an account. */
export interface Collections {
  /** The tier of a collection of this account; undefined when the account has none of that id. */
  tierOf(accountId: string, collectionId: string): Promise<Tier | undefined>;
}

/** Accounts whose collections are remembered. An account more costs one read of the store. */
const REMEMBERED_ACCOUNTS_MAX = 1000;

/** Remembers what `store.collections` says of ids and tiers. */
export function rememberCollections(store: Store): Collections {
  const known = new Map<string, readonly Pick<CollectionRecord, "id" | "tier">[]>();
  return {
    tierOf: async (accountId, collectionId) => {
      let collections = known.get(accountId);
      if (collections === undefined) {
        collections = await store.collections(accountId);
        if (known.size >= REMEMBERED_ACCOUNTS_MAX) known.clear();
        known.set(accountId, collections);
      }
      return collections.find(({ id }) => id === collectionId)?.tier;
    },
  };
}

/** Whose a document is. */
export interface Whose {
  readonly accountId: string;
  readonly ownerId: string;
}

/** For whom a document is read: what is slow is shared equally among accounts, and among the owners of each. */
export function behalfOf({ whileWaiting }: KnowledgeBase, { accountId, ownerId }: Whose): Behalf {
  return { tenant: [accountId, ownerId], whileWaiting };
}

/** The present moment as the wire writes it. */
export function nowIso(kb: KnowledgeBase): string {
  return new Date(kb.nowMs()).toISOString();
}
