/**
 * What scores mean: fits the constants of src/kb/search/score.ts on four kinds of text, each time without one of them, and
 * measures on that one. Run: `node bench/scores.ts [--embed-only] [--seconds N]`; vectors are kept in the temporary folder, and making
 * them takes some minutes of one core. Without the data or the model it says what it leaves out.
 *
 * Pairs are of a question with a chunk: those judged relevant, the best by words (BM25), and, of another set's chunks, the best by
 * words and by meaning: there nothing can be relevant. Judgements are incomplete in all four sets, so that some of what counts as irrelevant is not.
 */
import { parseArgs } from "node:util";
import { openLocalEmbedder } from "../src/kb/embed/local.ts";
import { embeddingText } from "../src/kb/embed/embedding-text.ts";
import type { Embedder } from "../src/kb/embed/embedder.ts";
import { chunkRecursive } from "../src/kb/ingest/chunk/recursive.ts";
import { analyze } from "../src/kb/lexical/analyzer.ts";
import { idf, saturation } from "../src/kb/lexical/bm25.ts";
import { matchOf, queryWords } from "../src/kb/lexical/word-match.ts";
import {
  COSINE_NOISE,
  FITTED,
  logitOf,
  shiftMaxOf,
  scoreOf,
  reportedScores,
  wordFeatures,
} from "../src/kb/search/score.ts";
import type { ChunkEvidence, Fitted } from "../src/kb/search/score.ts";
import { DEFAULT_SETTINGS } from "../src/wire/primitives.ts";
import { fitLogistic } from "./logistic.ts";
import { judgedSets } from "./judged-sets.ts";
import type { JudgedQuery, JudgedSet } from "./judged-sets.ts";
import { median, printTable, quantile } from "./report.ts";
import { withVectorCache } from "./vector-cache.ts";

/** Questions of a set, spread over it. */
const QUESTIONS = 50;
/** Relevant chunks of a question that are looked at, and chunks that its words find. */
const RELEVANT_MAX = 5;
const BY_WORDS = 5;
/** Chunks of a set that get vectors, the first ones of its questions: it is they that take the time. */
const POOL_MAX = 208;
/** Share of questions about another subject whose best hit may score 0.5 and more, in fitting; the goal is under 0.02. */
const OFF_MAX = 0.02;
/**
 * How much less the score by words and meaning differs from the one by words than would fit best, so that tiers differ by less
 * than 0.15 for a relevant chunk, in the middle of each set.
 */
const NEARER = 0.08;
/** Documents of a small collection, whose scores are compared with those of the whole set. */
const FEW_DOCUMENTS = 3;

interface Chunk {
  readonly document: string;
  readonly context: string;
  readonly counts: ReadonlyMap<string, number>;
  readonly words: number;
  readonly isRelevant: (query: JudgedQuery) => boolean;
}

interface Kind {
  readonly name: string;
  readonly chunks: readonly Chunk[];
  readonly queries: readonly JudgedQuery[];
  /** Chunks with vectors. */
  readonly pool: readonly number[];
  readonly byWords: (query: string, limit: number) => readonly number[];
}

interface Pair extends ChunkEvidence {
  readonly kind: string;
  readonly query: string;
  readonly isRelevant: boolean;
  /** The chunk is of another set. */
  readonly isOff: boolean;
}

const { values: options } = parseArgs({
  options: {
    "embed-only": { type: "boolean", default: false },
    seconds: { type: "string", default: "36000" },
  },
});

async function main(): Promise<void> {
  const kinds = judgedSets().map(readKind);
  if (kinds.length < 2) return;
  const found = await openLocalEmbedder({});
  if (!("embed" in found)) {
    console.log(`skipped: ${found.reason}`);
    return;
  }
  try {
    const embedder = withVectorCache(found);
    const isDone = await warm(kinds, embedder, Date.now() + Number(options.seconds) * 1000);
    if (options["embed-only"] || !isDone) {
      console.log(isDone ? "all vectors are made" : "vectors are still to be made");
      return;
    }
    const pairs = await pairsOf(kinds, embedder);
    report(
      kinds.map(({ name }) => name),
      pairs,
    );
    printGrowth(kinds);
  } finally {
    await found.close();
  }
}

/** Part of the questions of a set, and the chunks that they are compared with. */
function readKind(set: JudgedSet): Kind {
  const all = set.parts.get("train") ?? set.parts.get("all") ?? [];
  const step = Math.max(1, all.length / QUESTIONS);
  const count = Math.min(QUESTIONS, all.length);
  const queries = Array.from({ length: count }, (_, at) => all[Math.floor(at * step)]).filter(
    (query) => query !== undefined,
  );
  const chunks = set.documents.flatMap(({ id, title, content }) =>
    chunkRecursive(content, DEFAULT_SETTINGS).map(({ start, end, headings }): Chunk => {
      const text = content.slice(start, end);
      const { terms, counts, words } = analyze(`${title}\n${headings.join("\n")}\n${text}`);
      return {
        document: id,
        context: embeddingText({ title, headings, text }),
        counts: new Map(terms.map((term, at) => [term, counts[at] ?? 0])),
        words,
        isRelevant: ({ relevance }) => relevance({ resourceId: id, start, end }).length > 0,
      };
    }),
  );
  const byWords = openWords(chunks);
  const pool = new Set<number>();
  for (const query of queries)
    for (const at of [...relevantOf(chunks, query), ...byWords(query.text, BY_WORDS)]) pool.add(at);
  return { name: set.name, chunks, queries, pool: [...pool].slice(0, POOL_MAX), byWords };
}

function relevantOf(chunks: readonly Chunk[], query: JudgedQuery): readonly number[] {
  const relevant: number[] = [];
  for (const [at, { isRelevant }] of chunks.entries()) {
    if (relevant.length === RELEVANT_MAX) break;
    if (isRelevant(query)) relevant.push(at);
  }
  return relevant;
}

/** BM25 over all chunks, best first, ties in order. */
function openWords(chunks: readonly Chunk[]): Kind["byWords"] {
  const lists = new Map<string, number[]>();
  let words = 0;
  for (const [at, chunk] of chunks.entries()) {
    words += chunk.words;
    for (const term of chunk.counts.keys()) {
      const list = lists.get(term);
      if (list === undefined) lists.set(term, [at]);
      else list.push(at);
    }
  }
  return (query, limit) => {
    const sums = new Map<number, number>();
    const { terms, counts } = analyze(query);
    for (const [place, term] of terms.entries()) {
      const list = lists.get(term) ?? [];
      const weight = Math.sqrt(counts[place] ?? 0) * idf(list.length, chunks.length);
      for (const at of list) {
        const chunk = chunks[at];
        const times = chunk?.counts.get(term) ?? 0;
        const more = weight * saturation(times, chunk?.words ?? 1, words / chunks.length);
        sums.set(at, (sums.get(at) ?? 0) + more);
      }
    }
    return [...sums]
      .toSorted((a, b) => b[1] - a[1] || a[0] - b[0])
      .slice(0, limit)
      .map(([at]) => at);
  };
}

/** The sets about medicine, among other things, and those about computing: only the others' chunks are about another subject. */
function isMedical(name: string): boolean {
  return name === "SciFact" || name.startsWith("passages");
}

/** Makes the vectors; false where the time did not suffice. */
async function warm(kinds: readonly Kind[], embedder: Embedder, untilMs: number): Promise<boolean> {
  await embedder.embed(kinds.flatMap(({ queries }) => queries.map(({ text }) => text)));
  const longest = Math.max(...kinds.map(({ pool }) => pool.length));
  for (let at = 0; at < longest; at += 16) {
    for (const { chunks, pool } of kinds) {
      if (Date.now() > untilMs) return false;
      await embedder.embed(pool.slice(at, at + 16).map((place) => chunks[place]?.context ?? ""));
    }
  }
  return true;
}

async function pairsOf(kinds: readonly Kind[], embedder: Embedder): Promise<Pair[]> {
  const vectors = new Map<Chunk, Float32Array>();
  for (const { chunks, pool } of kinds) {
    const pooled = pool.map((at) => chunks[at]).filter((chunk) => chunk !== undefined);
    const made = await embedder.embed(pooled.map(({ context }) => context));
    for (const [at, chunk] of pooled.entries()) vectors.set(chunk, made[at] ?? new Float32Array());
  }
  const pairs: Pair[] = [];
  for (const { name, queries, chunks, byWords } of kinds) {
    for (const query of queries) {
      const [vector = new Float32Array()] = await embedder.embed([query.text]);
      const asked = queryWords(query.text);
      const add = (chunk: Chunk | undefined, isOff: boolean): void => {
        if (chunk === undefined) return;
        const counts = asked.terms.map((term) => chunk.counts.get(term) ?? 0);
        const own = vectors.get(chunk);
        pairs.push({
          kind: name,
          query: query.text,
          isRelevant: !isOff && chunk.isRelevant(query),
          isOff,
          match: matchOf(asked.weights, counts, chunk.words),
          total: asked.total,
          cosine: own && dot(own, vector),
        });
      };
      for (const at of new Set([...relevantOf(chunks, query), ...byWords(query.text, BY_WORDS)]))
        add(chunks[at], false);
      for (const other of kinds) {
        if (isMedical(other.name) === isMedical(name)) continue;
        // By words, of all chunks; by meaning, of those with vectors.
        for (const at of other.byWords(query.text, 10)) add(other.chunks[at], true);
        const near = other.pool
          .map((at) => other.chunks[at])
          .filter((chunk) => chunk !== undefined)
          .toSorted((a, b) => dot(vectors.get(b) ?? vector, vector) - dot(vectors.get(a) ?? vector, vector));
        for (const chunk of near.slice(0, 10)) add(chunk, true);
      }
    }
  }
  return pairs;
}

/** Fits on pairs: by words, then by both, then where 0.5 stands. Every kind has the same weight. */
function fit(pairs: readonly Pair[]): Fitted {
  const counts = new Map<string, number>();
  for (const { kind } of pairs) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const sample = (pair: Pair, features: readonly number[]) => ({
    features,
    isTrue: pair.isRelevant,
    weight: 1 / (counts.get(pair.kind) ?? 1),
  });
  const [i1 = 0, coverage = 0, strength = 0] = fitLogistic(
    pairs.map((pair) => sample(pair, wordFeatures(pair.match, pair.total))),
  );
  const words = { intercept: i1, coverage, strength };
  const first: Fitted = { ...FITTED, words };
  const near = pairs.filter(({ cosine }) => cosine !== undefined);
  const [i2 = 0, factor = 0, cosine = 0] = fitLogistic(
    near.map((pair) =>
      sample(pair, [
        logitOf({ ...pair, cosine: undefined }, first),
        Math.max(COSINE_NOISE, pair.cosine ?? 0),
      ]),
    ),
  );
  const both = {
    intercept: (1 - NEARER) * i2,
    words: (1 - NEARER) * factor + NEARER,
    cosine: (1 - NEARER) * cosine,
  };
  const fitted = { ...first, both };
  const kinds = Map.groupBy(pairs, ({ kind }) => kind).values();
  const worst = kinds.map((each) =>
    quantile(
      bestsOff(each, "fastest", (pair) => logitOf(pair, fitted)),
      1 - OFF_MAX,
    ),
  );
  return { ...fitted, even: Math.max(...worst) };
}

/** What a tier knows of pairs. Both tiers with vectors score alike. */
const TIERS = ["fastest", "moderate"] as const;
type Tier = (typeof TIERS)[number];

function known(pair: Pair, tier: Tier): Pair {
  return tier === "fastest" ? { ...pair, cosine: undefined } : pair;
}

/** The largest value of each question about another subject. */
function bestsOff(pairs: readonly Pair[], tier: Tier, valueOf: (pair: Pair) => number): number[] {
  const off = pairs.filter(({ isOff, cosine }) => isOff && (tier === "fastest" || cosine !== undefined));
  return [...Map.groupBy(off, ({ query }) => query).values()].map((list) =>
    Math.max(...list.map((pair) => valueOf(known(pair, tier)))),
  );
}

function report(names: readonly string[], pairs: readonly Pair[]): void {
  const rows: string[][] = [];
  for (const name of names) {
    const fitted = fit(pairs.filter(({ kind }) => kind !== name));
    console.log(
      `without ${name}: ${JSON.stringify(fitted, (_, value) => (typeof value === "number" ? Number(value.toFixed(2)) : value))}`,
    );
    const left = pairs.filter(({ kind }) => kind === name);
    for (const tier of TIERS) rows.push([`${name}, ${tier}`, ...figures(left, tier, fitted)]);
    const both = left.filter((pair) => pair.isRelevant && pair.cosine !== undefined);
    const apart = both.map((pair) =>
      Math.abs(scoreOf(known(pair, "fastest"), fitted) - scoreOf(pair, fitted)),
    );
    rows.push([`${name}, difference`, "", "", "", median(apart).toFixed(3), "", ""]);
  }
  console.log(
    `from all: ${JSON.stringify(fit(pairs), (_, value) => (typeof value === "number" ? Number(value.toFixed(2)) : value))}\n`,
  );
  printTable(
    [
      "left out",
      "off the subject ≥ 0.5",
      "precision from 0.5",
      "recall",
      "median, relevant",
      "others",
      "off",
    ],
    rows,
  );
}

/**
 * How far the score of a relevant chunk in an answer from the whole set, by words, lies from the one in an answer from three documents: its
 * own and two others.
 */
function printGrowth(kinds: readonly Kind[]): void {
  const rows = kinds.map(({ name, chunks, queries, byWords }) => {
    const documents = [...Map.groupBy(chunks, ({ document }) => document).values()];
    const apart: number[] = [];
    for (const [nth, query] of queries.entries()) {
      const found = byWords(query.text, 100).map((at) => chunks[at]);
      const large = answerOf(
        query,
        found.filter((chunk) => chunk !== undefined),
        chunks.length,
      );
      const relevant = [...large.keys()].filter((chunk) => chunk.isRelevant(query)).slice(0, RELEVANT_MAX);
      for (const [place, chunk] of relevant.entries()) {
        const others = [1, 2].map(
          (step) => documents[(nth * 37 + place * 11 + step) % documents.length] ?? [],
        );
        const few = [...documents.filter(([first]) => first?.document === chunk.document), ...others].slice(
          0,
          FEW_DOCUMENTS,
        );
        const three = [...new Set(few.flat())];
        const order = openWords(three)(query.text, 100).map((at) => three[at]);
        const small = answerOf(
          query,
          order.filter((each) => each !== undefined),
          three.length,
        );
        apart.push(Math.abs((large.get(chunk) ?? 0) - (small.get(chunk) ?? 0)));
      }
    }
    const within = apart.filter((each) => each < 0.1).length / apart.length;
    return [
      name,
      String(apart.length),
      median(apart).toFixed(3),
      Math.max(...apart).toFixed(3),
      within.toFixed(2),
    ];
  });
  console.log("\nfrom three documents to the whole set, fastest:");
  printTable(["", "relevant chunks", "median change", "largest", "share under 0.1"], rows);
}

/** What an answer by words shows of each chunk, which are in the order of a ranking. */
function answerOf(query: JudgedQuery, ranking: readonly Chunk[], size: number): ReadonlyMap<Chunk, number> {
  const asked = queryWords(query.text);
  const hits = ranking
    .map((chunk, rank) => {
      const counts = asked.terms.map((term) => chunk.counts.get(term) ?? 0);
      const match = matchOf(asked.weights, counts, chunk.words);
      return { chunk, mix: -rank, score: scoreOf({ match, total: asked.total, cosine: undefined }) };
    })
    .filter(({ score }) => score > 0);
  const scores = reportedScores(hits, shiftMaxOf(size));
  return new Map(hits.map(({ chunk }, at) => [chunk, scores[at] ?? 0]));
}

function figures(pairs: readonly Pair[], tier: Tier, fitted: Fitted): string[] {
  const score = (pair: Pair): number => scoreOf(known(pair, tier), fitted);
  const bests = bestsOff(pairs, tier, score);
  const near = pairs.filter(({ isOff, cosine }) => !isOff && (tier === "fastest" || cosine !== undefined));
  const relevant = near.filter(({ isRelevant }) => isRelevant);
  const kept = near.filter((pair) => score(pair) >= 0.5);
  const right = kept.filter(({ isRelevant }) => isRelevant).length;
  const middle = (list: readonly Pair[]): string => median(list.map(score)).toFixed(2);
  return [
    `${((100 * bests.filter((best) => best >= 0.5).length) / bests.length).toFixed(1)} %`,
    (right / kept.length).toFixed(2),
    (right / relevant.length).toFixed(2),
    middle(relevant),
    middle(near.filter(({ isRelevant }) => !isRelevant)),
    middle(pairs.filter(({ isOff }) => isOff)),
  ];
}

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (const [at, value] of a.entries()) sum += value * (b[at] ?? 0);
  return sum;
}

await main();
