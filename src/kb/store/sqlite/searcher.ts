import type { Tier } from "../../../wire/primitives.ts";
import type { Evidence, EvidenceQuery } from "../store.ts";
import type {
  CollectionRecord,
  FoundChunk,
  LexicalHits,
  LexicalQuery,
  ListPage,
  ListQuery,
} from "../store.ts";
import type {
  NearestQuery,
  Resource,
  ResourceKey,
  RowText,
  Scope,
  VectorHit,
  VersionChunks,
} from "../store.ts";
import { prepareChatReads, type ChatReads } from "./chat-reads.ts";
import { openForReading } from "./connection.ts";
import { storeFailure } from "./failures.ts";
import { prepareLexical } from "./lexical.ts";
import { prepareJobReads, type JobReads } from "./job-reads.ts";
import { prepareLookups } from "./lookups.ts";
import { prepareUnusedFiles } from "./retention.ts";
import { prepareScopes } from "./scopes.ts";
import { prepareVectors } from "./vectors.ts";
import { prepareWebhookReads, type WebhookReads } from "./webhook-reads.ts";

/** The reading side of a store file, each method over one consistent state. One argument each, for a worker to answer. */
export type Searcher = {
  collections(accountId: string): CollectionRecord[];
  resource(at: ResourceKey): Resource | undefined;
  deletedResource(at: ResourceKey): Resource | undefined;
  listResources(query: ListQuery): ListPage;
  chunks(at: ResourceKey): VersionChunks | undefined;
  chunksByRow(argument: { scope: Scope; rows: readonly number[] }): FoundChunk[];
  lexical(query: LexicalQuery): LexicalHits;
  nearest(query: NearestQuery): VectorHit[];
  evidence(query: EvidenceQuery): Evidence;
  chunksWithoutVector(argument: { fingerprint: string; tiers: readonly Tier[]; limit: number }): RowText[];
  unusedFiles(argument: { beforeIso: string; limit: number }): string[];
  thread: ChatReads["thread"];
  chatJobs: ChatReads["chatJobs"];
  passage: ChatReads["passage"];
  dueJobs: JobReads["dueJobs"];
  jobFigures: JobReads["jobFigures"];
  deadDeliveries: WebhookReads["deadDeliveries"];
  deliveryFigures: WebhookReads["deliveryFigures"];
  endpoints: WebhookReads["endpoints"];
  close(): void;
};

/** Opens the store file, which the writer has made. Synchronous inside: meant for a thread of its own. */
export function openSearcher(path: string): Searcher {
  const db = openForReading(path);
  const lookups = prepareLookups(db);
  const scopes = prepareScopes(db);
  const lexical = prepareLexical(db);
  const vectors = prepareVectors(db);
  const jobs = prepareJobReads(db);
  const webhooks = prepareWebhookReads(db);
  const chat = prepareChatReads(db);
  const unusedFiles = prepareUnusedFiles(db);
  const begin = db.prepare("BEGIN");
  const commit = db.prepare("COMMIT");

  /** Runs a read whose statements all see the same state. */
  function read<A, T>(run: (argument: A) => T): (argument: A) => T {
    return (argument) => {
      try {
        begin.run();
        return run(argument);
      } catch (error) {
        throw storeFailure(error, path);
      } finally {
        if (db.inTransaction) commit.run();
      }
    };
  }

  const chunksByRow = ({ scope, rows }: { scope: Scope; rows: readonly number[] }): FoundChunk[] => {
    const place = scopes.find(scope);
    return place === undefined ? [] : lookups.chunksByRow(place.range, rows);
  };
  const byWords = (query: LexicalQuery): LexicalHits => {
    const place = scopes.find(query.scope);
    return place === undefined ? { hits: [], ceiling: 0 } : lexical(place, query.query, query.limit);
  };
  const byVector = (query: NearestQuery): VectorHit[] => {
    const place = scopes.find(query.scope);
    return place === undefined ? [] : vectors.nearest(place, query.fingerprint, query.vector, query.limit);
  };

  return {
    collections: read(lookups.collections),
    resource: read(lookups.resource),
    deletedResource: read(lookups.deletedResource),
    listResources: read(lookups.listResources),
    chunks: read(lookups.chunks),
    chunksByRow: read(chunksByRow),
    lexical: read(byWords),
    nearest: read(byVector),
    evidence: read((query) => {
      const hits = byWords(query.lexical);
      const nearest = query.nearest && byVector(query.nearest);
      const rows = new Set([...hits.hits, ...(nearest ?? [])].map(({ row }) => row));
      const chunks = chunksByRow({ scope: query.lexical.scope, rows: [...rows] });
      return { lexical: hits, nearest, chunks };
    }),
    chunksWithoutVector: read(({ fingerprint, tiers, limit }) =>
      lookups.chunksWithoutVector(fingerprint, tiers, limit),
    ),
    unusedFiles: read(unusedFiles),
    thread: read(chat.thread),
    chatJobs: read(chat.chatJobs),
    passage: read(chat.passage),
    dueJobs: read(jobs.dueJobs),
    jobFigures: read(jobs.jobFigures),
    deadDeliveries: read(webhooks.deadDeliveries),
    deliveryFigures: read(webhooks.deliveryFigures),
    endpoints: read(webhooks.endpoints),
    close: () => {
      db.close();
    },
  };
}
