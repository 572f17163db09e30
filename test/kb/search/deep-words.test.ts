import { expect, it } from "vitest";
import type { Embedder } from "../../../src/kb/embed/embedder.ts";
import { queryWords } from "../../../src/kb/lexical/word-match.ts";
import { scoreOf } from "../../../src/kb/search/score.ts";
import { search, type SearchedIndex } from "../../../src/kb/search/search.ts";
import type { FoundChunk } from "../../../src/kb/store/search-index.ts";

const QUERY = "impeller";
/** The only chunk that is near by meaning. Its rank by words lies beyond the depth of the fused list. */
const NEAR = 140;
const COSINE = 0.9;
const match = { matched: 1, strength: 0.9 };

/** An index of 150 chunks with the query word, best first. */
const index: SearchedIndex = {
  evidence: async ({ lexical }) => ({
    lexical: {
      hits: Array.from({ length: lexical.limit }, (_, ref) => ({ ref, bm25: 1000 - ref, match })).slice(
        0,
        150,
      ),
      ceiling: 2000,
    },
    scopeChunks: 150,
    nearest: [{ ref: NEAR, cosine: COSINE }],
    others: Array.from({ length: 100 }, (_, ref) => ({ ref, cosine: 0 })),
    nearestMatches: lexical.limit > NEAR ? [] : [{ ref: NEAR, match }],
    chunks: [],
  }),
  foundChunks: async (_scope, refs) =>
    refs.map((ref): FoundChunk => ({
      ref,
      id: String(ref).padStart(3, "0"),
      text: `Chunk ${ref}`,
      start: 0,
      end: 1,
      headings: [],
      resourceId: String(ref),
      title: "",
      collectionId: "c",
      ownerId: "ann",
      version: 1,
      sha256: undefined,
      url: null,
      line: 1,
      locations: [],
    })),
  documentMatches: async () => [],
  sentenceMatches: async () => [],
};
const embedder: Embedder = {
  fingerprint: "one/1",
  dimensions: 1,
  tokensMax: 10,
  embed: async (texts) => texts.map(() => Float32Array.of(1)),
  close: async () => undefined,
};

it("high_accuracy counts the words of a near chunk beyond the lexical depth, and admits no other chunk from there", async () => {
  const scope = { accountId: "a", collectionId: "c", ownerId: "ann" };
  const asked = { scope, tier: "high_accuracy" as const, query: QUERY, topK: 100, scoreMin: undefined };
  const { results } = await search(index, embedder, asked);
  const ids = results.map(({ id }) => Number(id));
  expect(ids.filter((ref) => ref >= 100)).toEqual([NEAR]);
  const { total } = queryWords(QUERY);
  expect(results[0]?.score).toBeCloseTo(scoreOf({ match, total, cosine: COSINE }), 6);
  expect(ids[0]).toBe(NEAR);
});
