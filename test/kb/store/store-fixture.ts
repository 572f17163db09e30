import { afterAll, beforeAll, beforeEach } from "vitest";
import type { Span } from "../../../src/kb/ingest/chunk/span.ts";
import type { Store } from "../../../src/kb/store/store.ts";
import type { Account } from "../../../src/kb/store/accounts.ts";
import type { Chunk } from "../../../src/kb/store/chunks.ts";
import type {
  CollectionRecord,
  NewResource,
  Resource,
  ResourceKey,
} from "../../../src/kb/store/resources.ts";
import type {
  DocumentsQuery,
  EvidenceQuery,
  FoundChunk,
  LexicalHits,
  LexicalQuery,
  NearestQuery,
  Scope,
  VectorHit,
} from "../../../src/kb/store/search-index.ts";
import { DEFAULT_SETTINGS, type Tier } from "../../../src/wire/primitives.ts";
import { createEmbedded, type Embedded } from "./embedded.ts";

export const NOW = "2026-01-02T03:04:05.678Z";
export const LATER = "2026-01-03T03:04:05.678Z";

/** A store to test, with an account in it and shortcuts to write and read. */
export interface StoreFixture {
  readonly store: Store;
  /** A new account for each test. */
  readonly account: Account;
  newId(this: void): string;
  resource(this: void, content: string, fields?: Partial<NewResource>): NewResource;
  /** Creates a resource, by default of owner `ann` in `fastest`, with a chunk per paragraph. */
  create(this: void, content: string, fields?: Partial<NewResource>, chunking?: Embedded): Promise<Resource>;
  collection(this: void, tier?: Tier): Promise<CollectionRecord>;
  scope(this: void, ownerId?: string, tier?: Tier): Promise<DocumentsQuery["scope"]>;
  /** Chunks found by words, by default in `scope()`. */
  find(this: void, query: string, within?: Scope, limit?: number): Promise<readonly FoundChunk[]>;
  /** Texts of the chunks found by words. */
  texts(this: void, query: string, within?: Scope): Promise<string[]>;
  /** Chunks of a resource; empty if the resource does not exist. */
  chunks(this: void, at: ResourceKey): Promise<readonly Chunk[]>;
  /** Runs a test on an empty store of its own, for operations across accounts. */
  alone(this: void, run: (store: Store) => Promise<void>): Promise<void>;
}

/**
 * Opens a store for the tests of a suite, and an account in it for each test. Accounts are isolated, which the suite
 * tests anyway.
 */
export function openFixture(open: () => Promise<Store>): StoreFixture {
  let store: Store;
  let account: Account;
  let made = 0;

  beforeAll(async () => {
    store = await open();
  });
  afterAll(() => store.close());
  beforeEach(async () => {
    account = await store.records.ensureAccount(`account ${++made}`);
  });

  const newId = (): string => (++made).toString(16).padStart(24, "0");
  const resource = (content: string, fields: Partial<NewResource> = {}): NewResource => ({
    accountId: account.id,
    id: newId(),
    tier: "fastest",
    ownerId: "ann",
    origin: "content",
    title: "Untitled",
    description: "",
    url: null,
    content,
    settings: DEFAULT_SETTINGS,
    createdAt: NOW,
    ...fields,
  });
  const collection = async (tier: Tier = "fastest"): Promise<CollectionRecord> => {
    const found = (await store.records.collections(account.id)).find((each) => each.tier === tier);
    if (found === undefined) throw new Error(`no collection ${tier}`);
    return found;
  };
  const scope = async (ownerId = "ann", tier: Tier = "fastest"): Promise<DocumentsQuery["scope"]> => ({
    accountId: account.id,
    collectionId: (await collection(tier)).id,
    ownerId,
  });
  const find = async (query: string, within?: Scope, limit = 10): Promise<readonly FoundChunk[]> => {
    const at = within ?? (await scope());
    const { hits } = await byWords(store, { scope: at, query, limit });
    return store.index.foundChunks(
      at,
      hits.map(({ ref }) => ref),
    );
  };

  return {
    get store() {
      return store;
    },
    get account() {
      return account;
    },
    newId,
    resource,
    create: (content, fields = {}, chunking = wordsOnly(content)) =>
      createEmbedded(store, resource(content, fields), chunking),
    collection,
    scope,
    find,
    chunks: async (at) => (await store.records.chunks(at))?.chunks ?? [],
    texts: async (query, within) => (await find(query, within)).map(({ text }) => text),
    alone: async (run) => {
      const shared = store;
      store = await open();
      try {
        account = await store.records.ensureAccount("local");
        await run(store);
      } finally {
        await store.close();
        store = shared;
      }
    },
  };
}

/** One chunk per paragraph, without vectors. */
export function wordsOnly(text: string): Embedded {
  const spans: Span[] = [];
  for (const match of text.matchAll(/\S(?:.|\n(?!\n))*/g)) {
    spans.push({ start: match.index, end: match.index + match[0].trimEnd().length, headings: [] });
  }
  return { spans };
}

/** Scales a vector to length 1. */
export function unit(values: readonly number[]): Float32Array {
  const length = Math.hypot(...values);
  return Float32Array.from(values, (value) => value / length);
}

/** Dot product of two vectors. */
export function dot(a: Float32Array, b: Float32Array): number {
  return a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0);
}

/** Searches by words alone. */
export async function byWords(
  { index }: Store,
  { scope, ...query }: LexicalQuery & Pick<EvidenceQuery, "scope">,
): Promise<LexicalHits> {
  const evidence = { scope, lexical: query, nearest: undefined, depth: 0, withChunks: false };
  return (await index.evidence(evidence)).lexical;
}

/** Searches by vector alone. */
export async function byVector(
  { index }: Store,
  { scope, ...query }: NearestQuery & Pick<EvidenceQuery, "scope">,
): Promise<readonly VectorHit[]> {
  const evidence = { scope, lexical: { query: "", limit: 1 }, nearest: query, depth: 0, withChunks: false };
  return (await index.evidence(evidence)).nearest ?? [];
}
