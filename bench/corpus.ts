import type { Embedder } from "../src/kb/embed/embedder.ts";
import { chunkRecursive } from "../src/kb/ingest/chunk/recursive.ts";
import type { Store } from "../src/kb/store/store.ts";
import { createEmbedded, type Embedded } from "../test/kb/store/embedded.ts";
import type { Scope } from "../src/kb/store/search-index.ts";
import { DEFAULT_SETTINGS, type Tier } from "../src/wire/primitives.ts";
import { LARGE_TREE, makeTexts, mulberry32, wordOfRank } from "./tree.ts";

/** Creates under way at once, as the daemon sends them. */
export const IN_FLIGHT = 16;
export const DIMENSIONS = 384;
/** Documents made ahead of being written, so that making them is not part of the time. */
const BATCH = 1000;
const CLUSTERS = 1000;
/** Sentences of a chunk, as in English prose. */
const SENTENCES = 6;

/** A generated document as the store takes it. */
export interface Document {
  readonly text: string;
  readonly chunking: Embedded;
}

/** Documents for a tier, without end, with vectors where the tier has them; the same texts each time. */
export function* makeDocuments(tier: Tier): Generator<Document, never> {
  for (const text of makeTexts(LARGE_TREE.meanBytes)) {
    const spans = chunkRecursive(text, DEFAULT_SETTINGS);
    const vectors = tier === "fastest" ? undefined : spans.map(makeVector);
    const sentences =
      tier === "high_accuracy" ? spans.map(() => Array.from({ length: SENTENCES }, makeVector)) : undefined;
    const fingerprint = vectors && embedder.fingerprint;
    yield { text, chunking: { spans, vectors, fingerprint, sentences } };
  }
  throw new Error("the texts ended");
}

/** What a load took. */
export interface Load {
  readonly documents: number;
  readonly chunks: number;
  readonly chars: number;
  /** Of writing alone. */
  readonly ms: number;
}

/** Writes documents until so many chunks are written. */
export async function fill(store: Store, accountId: string, tier: Tier, chunksWanted: number): Promise<Load> {
  const source = makeDocuments(tier);
  let [documents, chunks, chars, ms] = [0, 0, 0, 0];
  while (chunks < chunksWanted) {
    const batch: Document[] = [];
    while (batch.length < BATCH && chunks < chunksWanted) {
      const document = source.next().value;
      batch.push(document);
      chunks += document.chunking.spans.length;
      chars += document.text.length;
    }
    const begin = performance.now();
    await createAll(store, accountId, tier, batch, () => true);
    ms += performance.now() - begin;
    documents += batch.length;
  }
  return { documents, chunks, chars, ms };
}

/** Creates documents, IN_FLIGHT at once, as long as `goOn` says so; answers how many. */
export async function createAll(
  store: Store,
  accountId: string,
  tier: Tier,
  documents: Iterable<Document>,
  goOn: () => boolean,
): Promise<number> {
  const waiting = documents[Symbol.iterator]();
  let count = 0;
  const lane = async (): Promise<void> => {
    while (goOn()) {
      const next = waiting.next();
      if (next.done === true) return;
      const { text, chunking } = next.value;
      const id = (++made).toString(16).padStart(24, "0");
      const title = text.slice(2, text.indexOf("\n"));
      const fields = {
        accountId,
        id,
        tier,
        ownerId: "bench",
        origin: "content",
        title,
        content: text,
      } as const;
      const rest = {
        description: "",
        url: null,
        settings: DEFAULT_SETTINGS,
        createdAt: "2026-01-01T00:00:00.000Z",
      };
      await createEmbedded(store, { ...fields, ...rest }, chunking);
      count++;
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
  return count;
}

let made = 0;

/** The benchmark's account, and the scope of a tier in it. */
export async function openAccount(
  store: Store,
): Promise<{ accountId: string; scopeOf: (tier: Tier) => Scope }> {
  const { id: accountId } = await store.records.ensureAccount("bench");
  const collections = await store.records.collections(accountId);
  const scopeOf = (wanted: Tier): Scope => {
    const collectionId = collections.find(({ tier }) => tier === wanted)?.id ?? "";
    return { accountId, collectionId, ownerId: "bench" };
  };
  return { accountId, scopeOf };
}

/** Questions by the kind of their words. */
export type Kind = "rare" | "mixed" | "common";

/** So many different questions of a kind; the same each time. */
export function makeQuestions(kind: Kind, count: number): string[] {
  return Array.from({ length: count }, (_, at) => {
    const word = (from: number, step: number, span: number): string =>
      wordOfRank(from + ((at * step) % span));
    switch (kind) {
      case "rare":
        return `${word(8000, 211, 4000)} ${word(12_000, 307, 7000)} ${word(6000, 101, 2000)}`;
      case "mixed":
        return `how is the ${word(300, 17, 2000)} of a ${word(5000, 97, 5000)} used in the ${word(60, 9, 200)}`;
      case "common":
        return Array.from({ length: 9 }, (_word, nth) => wordOfRank((nth * 5 + at * 7) % 48)).join(" ");
    }
  });
}

/** Answers at once: what a model costs is measured by bench/embed.ts. */
export const embedder: Embedder = {
  fingerprint: "random",
  dimensions: DIMENSIONS,
  tokensMax: 256,
  embed: async (texts) => texts.map(makeVector),
  close: async () => undefined,
};

const random = mulberry32(0xfeed);
const gauss = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
const centres = Array.from({ length: CLUSTERS }, () => Float32Array.from({ length: DIMENSIONS }, gauss));
/** A vector's difference from its cluster is a stretch of these: drawing each number would take most of a run. */
const noise = Float32Array.from({ length: 2 ** 19 }, () => 0.7 * gauss());

/** A unit vector near one of the centres. */
function makeVector(): Float32Array {
  const centre = centres[Math.floor(random() * CLUSTERS)] ?? new Float32Array(DIMENSIONS);
  const from = Math.floor(random() * (noise.length - DIMENSIONS));
  const vector = centre.map((value, at) => value + (noise[from + at] ?? 0));
  let squares = 0;
  for (const value of vector) squares += value * value;
  return vector.map((value) => value / Math.sqrt(squares));
}
