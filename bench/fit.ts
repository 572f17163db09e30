/**
 * Chooses the constants of the ranking by leaving out one judged set at a time: those with the best mean nDCG@10 on the others are
 * judged on the set left out. Replays the evidence of the store, without vectors of sentences. Run:
 *
 *     node bench/fit.ts [--sample QUESTIONS,DOCUMENTS]
 *
 * Vectors are kept in the temporary folder: making them takes minutes.
 */
import { parseArgs } from "node:util";
import type { Embedder } from "../src/kb/embed/embedder.ts";
import { openLocalEmbedder } from "../src/kb/embed/local.ts";
import { queryWords, type QueryWords } from "../src/kb/lexical/word-match.ts";
import { fuse, FUSED_DEPTH, lexicalShare, WORD_WEIGHTS } from "../src/kb/search/fuse.ts";
import { RERANKED_DEPTH } from "../src/kb/search/rerank.ts";
import { mixTexts, TEXT_WEIGHTS } from "../src/kb/search/text-evidence.ts";
import { openSqliteStore } from "../src/kb/store/sqlite/open.ts";
import type { ChunkRef } from "../src/kb/store/chunks.ts";
import type { Evidence, FoundChunk } from "../src/kb/store/search-index.ts";
import { documentationSet } from "./docs-sample.ts";
import { judgedSets, type FoundSpan, type JudgedQuery, type JudgedSet } from "./judged-sets.ts";
import { fill } from "./judged-store.ts";
import { mean, qualityOf } from "./ranking-quality.ts";
import { printTable } from "./report.ts";
import { sampleOf } from "./sample.ts";
import { withVectorCache } from "./vector-cache.ts";

/** The constants that are tried together, and those in use. */
interface Stage<T> {
  readonly name: string;
  readonly inUse: T;
  readonly choices: readonly T[];
  readonly rank: (found: Found, choice: T) => readonly { readonly ref: ChunkRef }[];
}

/** What a search of a query finds, read once. */
interface Found {
  readonly query: JudgedQuery;
  readonly words: QueryWords;
  readonly evidence: Evidence;
  /** Every chunk that may rank. */
  readonly chunks: ReadonlyMap<ChunkRef, FoundChunk>;
}

const WORDS: Stage<typeof WORD_WEIGHTS> = {
  name: "moderate: weight of words, and its change with coverage",
  inUse: WORD_WEIGHTS,
  choices: [0.3, 0.4, 0.5, 0.6, 0.7].flatMap((share) =>
    [0, 0.1, 0.2, 0.3, 0.4].map((perCoverage) => ({ share, perCoverage })),
  ),
  rank: fused,
};

const TEXTS: Stage<typeof TEXT_WEIGHTS> = {
  name: "high_accuracy: weights of closeness and of neighbours",
  inUse: TEXT_WEIGHTS,
  choices: [0, 0.1, 0.2, 0.3].flatMap((closeness) =>
    [0, 0.1, 0.2, 0.3].map((neighbour) => ({ closeness, neighbour })),
  ),
  rank: (found, weights) => {
    const hits = fused(found, WORD_WEIGHTS);
    const first = hits.slice(0, RERANKED_DEPTH).flatMap(({ ref }) => found.chunks.get(ref) ?? []);
    return mixTexts(hits, first, found.words, weights);
  },
};

function fused({ evidence, words }: Found, weights: typeof WORD_WEIGHTS) {
  const { lexical, nearest = [], others } = evidence;
  const share = lexicalShare(lexical.hits[0]?.match, words.total, weights);
  return fuse(lexical.hits, nearest, others, FUSED_DEPTH, share);
}

/** Reads what a set's queries find. */
async function findAll(set: JudgedSet, embedder: Embedder): Promise<Found[]> {
  const store = await openSqliteStore();
  try {
    const { scope } = await fill(store, set.documents, embedder, false);
    const found: Found[] = [];
    for (const query of [...set.parts.values()].flat()) {
      const [vector] = await embedder.embed([query.text]);
      if (vector === undefined) throw new Error(`${query.text} has no vector`);
      const evidence = await store.index.evidence({
        scope,
        lexical: { query: query.text, limit: FUSED_DEPTH },
        nearest: { vector, fingerprint: embedder.fingerprint, limit: FUSED_DEPTH },
        depth: FUSED_DEPTH,
        withChunks: false,
      });
      const refs = fuse(evidence.lexical.hits, evidence.nearest ?? [], evidence.others).map(({ ref }) => ref);
      const chunks = await store.index.foundChunks(scope, refs);
      found.push({
        query,
        words: queryWords(query.text),
        evidence,
        chunks: new Map(chunks.map((chunk) => [chunk.ref, chunk])),
      });
    }
    return found;
  } finally {
    await store.close();
  }
}

/** Mean nDCG@10 of a set for each choice, and for the constants in use. */
function measure<T>(set: JudgedSet, found: readonly Found[], { choices, inUse, rank }: Stage<T>): number[] {
  return [...choices, inUse].map((choice) =>
    mean(
      found.map((each) => {
        const spans = rank(each, choice).flatMap(({ ref }): FoundSpan[] => {
          const chunk = each.chunks.get(ref);
          return chunk === undefined ? [] : [chunk];
        });
        return qualityOf(set, each.query, spans).ndcg;
      }),
    ),
  );
}

function printStage<T>(
  stage: Stage<T>,
  sets: readonly { readonly set: JudgedSet; readonly found: readonly Found[] }[],
): void {
  const measured = sets.map(({ set, found }) => measure(set, found, stage));
  const bestOn = (rows: readonly (readonly number[])[]): number => {
    const means = stage.choices.map((_, at) => mean(rows.map((row) => row[at] ?? 0)));
    return means.indexOf(Math.max(...means));
  };
  const gains: number[] = [];
  const rows = sets.map(({ set, found }, at) => {
    const chosen = bestOn(measured.filter((_, other) => other !== at));
    const now = measured[at]?.at(-1) ?? 0;
    const then = measured[at]?.[chosen] ?? 0;
    gains.push(then - now);
    const own = stage.choices[bestOn(measured.slice(at, at + 1))];
    return [
      `${set.name} (${found.length})`,
      now.toFixed(4),
      JSON.stringify(stage.choices[chosen]),
      signed(then - now),
      JSON.stringify(own),
    ];
  });
  console.log(`\n${stage.name}; in use ${JSON.stringify(stage.inUse)}`);
  printTable(["set left out", "in use", "chosen on the others", "gain", "best on the set itself"], rows);
  console.log(
    `mean gain ${signed(mean(gains))}; best on all: ${JSON.stringify(stage.choices[bestOn(measured)])}`,
  );
}

function signed(value: number): string {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(4)}`;
}

const { values: options } = parseArgs({ options: { sample: { type: "string", default: "300,1500" } } });
const embedder = await openLocalEmbedder({});
if ("embed" in embedder) {
  try {
    const documentation = documentationSet();
    const cached = withVectorCache(embedder);
    const sets = [];
    for (const set of [...judgedSets(), ...(documentation === undefined ? [] : [documentation])]) {
      const asked = sampleOf(set, options);
      sets.push({ set: asked, found: await findAll(asked, cached) });
      console.log(`${set.name}: ${asked.documents.length} documents read`);
    }
    printStage(WORDS, sets);
    printStage(TEXTS, sets);
  } finally {
    await embedder.close();
  }
} else console.log(`skipped: ${embedder.reason}`);
