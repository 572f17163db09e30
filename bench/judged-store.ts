/** A judged set in a store of its own. */
import type { Embedder } from "../src/kb/embed/embedder.ts";
import { embeddingText } from "../src/kb/embed/embedding-text.ts";
import { chunkRecursive } from "../src/kb/ingest/chunk/recursive.ts";
import { embedSentences } from "../src/kb/ingest/sentence-vectors.ts";
import type { Scope } from "../src/kb/store/search-index.ts";
import type { Store } from "../src/kb/store/store.ts";
import { DEFAULT_SETTINGS } from "../src/wire/primitives.ts";
import type { FoundSpan, JudgedDocument } from "./judged-sets.ts";
import { createEmbedded } from "../test/kb/store/embedded.ts";

/** A chunk of the set. */
export interface StoredChunk {
  readonly span: FoundSpan;
  readonly text: string;
  /** Undefined without a model. */
  readonly vector: Float32Array | undefined;
}

export interface Filled {
  readonly scope: Scope;
  /** The chunks by id, in the order of the documents. */
  readonly chunks: ReadonlyMap<string, StoredChunk>;
}

/** Puts the documents into the store once, in `high_accuracy`: the other tiers read less of it. */
export async function fill(
  store: Store,
  documents: readonly JudgedDocument[],
  embedder: Embedder | undefined,
  withSentences: boolean,
): Promise<Filled> {
  const account = await store.records.ensureAccount("bench");
  const chunks = new Map<string, StoredChunk>();
  for (const { id, title, content, metadata } of documents) {
    const spans = chunkRecursive(content, DEFAULT_SETTINGS);
    const texts = spans.map(
      ({ start, end, before = "", after = "" }) => before + content.slice(start, end) + after,
    );
    const contexts = spans.map(({ headings }, at) =>
      embeddingText({ title, headings, text: texts[at] ?? "" }),
    );
    const vectors = await embedder?.embed(contexts);
    const plain = spans.map(({ start, end }) => content.slice(start, end));
    await createEmbedded(
      store,
      {
        accountId: account.id,
        id,
        tier: "high_accuracy",
        ownerId: "bench",
        origin: "content",
        title,
        description: "",
        url: null,
        content,
        settings: DEFAULT_SETTINGS,
        createdAt: "2026-01-01T00:00:00.000Z",
        ...(metadata !== undefined && { metadata }),
      },
      {
        spans,
        vectors,
        fingerprint: embedder?.fingerprint,
        sentences: embedder && withSentences ? await embedSentences(embedder, plain) : undefined,
      },
    );
    const stored = await store.records.chunks({ accountId: account.id, id });
    for (const [at, { id: chunkId, start, end }] of (stored?.chunks ?? []).entries()) {
      chunks.set(chunkId, {
        span: { resourceId: id, start, end },
        text: plain[at] ?? "",
        vector: vectors?.[at],
      });
    }
  }
  const collection = (await store.records.collections(account.id)).find(
    ({ tier }) => tier === "high_accuracy",
  );
  return { scope: { accountId: account.id, collectionId: collection?.id ?? "", ownerId: "bench" }, chunks };
}
