/**
 * Retrieval quality on judged sets: nDCG@10 and recall in the first 100 chunks for the tiers, each answered as the service
 * answers a search, beside published and measured anchors. Run:
 *
 *     node bench/retrieval.ts [--set NAME] [--part NAME] [--tiers LIST] [--sample QUESTIONS,DOCUMENTS] [--fit] [--ingest]
 *       [--embedding BASE_URL --embedding-model NAME [--embedding-key FILE]]
 *       [--reranker URL --reranker-model NAME [--reranker-key FILE]]
 *
 * `--sample` takes so many questions of each part, spread over it, and so many documents: those judged relevant to the questions, and others.
 * `--tiers fastest` needs no model and `--tiers fastest,moderate` no sentences, `--fit` prints how far scores predict relevance, `--ingest` what each tier costs to take in.
 * Nothing is ever fitted on the test queries. Vectors are kept in the temporary folder: making them takes minutes.
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import type { Embedder } from "../src/kb/embed/embedder.ts";
import { embeddingText } from "../src/kb/embed/embedding-text.ts";
import { openLocalEmbedder } from "../src/kb/embed/local.ts";
import { openRemoteEmbedder } from "../src/kb/embed/remote.ts";
import { chunkRecursive } from "../src/kb/ingest/chunk/recursive.ts";
import { embedSentences } from "../src/kb/ingest/sentence-vectors.ts";
import { openReranker } from "../src/kb/search/reranker.ts";
import type { Reranker } from "../src/kb/search/reranker.ts";
import { search } from "../src/kb/search/search.ts";
import { openSqliteStore } from "../src/kb/store/sqlite/open.ts";
import type { Store } from "../src/kb/store/store.ts";
import type { Scope } from "../src/kb/store/search-index.ts";
import { DEFAULT_SETTINGS, Tier } from "../src/wire/primitives.ts";
import { judgedSets } from "./judged-sets.ts";
import type { FoundPlace, JudgedDocument, JudgedQuery, JudgedSet } from "./judged-sets.ts";
import { printTable } from "./report.ts";
import { withVectorCache } from "./vector-cache.ts";

/** What a search may be asked for at most. */
const TOP_K = 100;
/** Results of a query whose scores are compared with the truth: those that people see. */
const SEEN = 10;
/** Measured by others on the same data, or published. */
const ANCHORS: Readonly<Record<string, readonly string[][]>> = {
  SciFact: [
    ["anchor: FTS5 BM25, whole documents", "", "", "0.687", ""],
    ["anchor: all-MiniLM-L6-v2, whole documents", "", "", "0.637", ""],
    ["anchor: their reciprocal rank fusion", "", "", "0.715", ""],
    ["anchor: their min-max mean", "", "", "0.729", ""],
    ["published: BM25 (Pyserini)", "", "", "0.679", ""],
    ["published: bge-base-en-v1.5", "", "", "0.741", ""],
    ["published: its fusion with BM25", "", "", "0.747", ""],
  ],
};

const { values: options } = parseArgs({
  options: {
    set: { type: "string" },
    part: { type: "string" },
    tiers: { type: "string", default: "fastest,moderate,high_accuracy" },
    sample: { type: "string" },
    fit: { type: "boolean", default: false },
    ingest: { type: "boolean", default: false },
    embedding: { type: "string" },
    "embedding-model": { type: "string", default: "" },
    "embedding-key": { type: "string" },
    reranker: { type: "string" },
    "reranker-model": { type: "string", default: "" },
    "reranker-key": { type: "string" },
  },
});

const tiers = options.tiers.split(",").map((tier) => Tier.parse(tier));

async function main(): Promise<void> {
  const embedder = tiers.some((tier) => tier !== "fastest") ? await findEmbedder() : undefined;
  const reranker = findReranker();
  try {
    for (const set of judgedSets()) {
      if (options.set === undefined || set.name.includes(options.set))
        await runSet(sampled(set), embedder && withVectorCache(embedder), reranker);
    }
    if (options.ingest && embedder !== undefined) await measureIngest(embedder);
  } finally {
    await embedder?.close();
    await reranker?.close();
  }
}

async function findEmbedder(): Promise<Embedder | undefined> {
  const { embedding: baseUrl, "embedding-model": model, "embedding-key": keyFile } = options;
  if (baseUrl !== undefined) return openRemoteEmbedder({ baseUrl, model, apiKey: keyOf(keyFile) });
  const found = await openLocalEmbedder({});
  if ("embed" in found) return found;
  console.log(`moderate and high_accuracy skipped: ${found.reason}`);
  return undefined;
}

function findReranker(): Reranker | undefined {
  const { reranker: url, "reranker-model": model, "reranker-key": keyFile } = options;
  if (url === undefined) return undefined;
  const onChange = (problem: Error | undefined): void =>
    console.log(problem?.message ?? "the reranker works again");
  return openReranker({ url, model, apiKey: keyOf(keyFile), timeoutMs: 30_000, nowMs: Date.now, onChange });
}

function keyOf(file: string | undefined): string | undefined {
  return file === undefined ? undefined : readFileSync(file, "utf8").trim();
}

async function runSet(
  set: JudgedSet,
  embedder: Embedder | undefined,
  reranker: Reranker | undefined,
): Promise<void> {
  const store = await openSqliteStore();
  try {
    const filled = await fill(store, set.documents, embedder);
    const asked = tiers.filter((tier) => tier === "fastest" || embedder !== undefined);
    const parts = [...set.parts];
    const rows: string[][] = [];
    const truths: { tier: Tier; truths: readonly Truth[] }[] = [];
    for (const tier of asked) {
      const figures: string[] = [];
      for (const [part, queries] of parts) {
        const answers = await answerAll(store, filled, tier, embedder, reranker, queries);
        figures.push(...quality(set, queries, answers));
        if (part !== "test") truths.push({ tier, truths: truthsOf(queries, answers) });
      }
      rows.push([tier, ...figures]);
    }
    console.log(`\n${set.name}: ${set.documents.length} documents, ${filled.places.size} chunks`);
    const heads = parts.flatMap(([part]) => [`${part} nDCG@10`, `${part} recall@100`]);
    printTable(["", ...heads], [...rows, ...(ANCHORS[set.name] ?? [])]);
    if (options.fit) for (const each of truths) printTruth(each.tier, each.truths);
  } finally {
    await store.close();
  }
}

/** The part of a set that `--sample` and `--part` ask for. */
function sampled(set: JudgedSet): JudgedSet {
  const wanted = [...set.parts].filter(([part]) => options.part === undefined || part === options.part);
  if (options.sample === undefined) return { ...set, parts: new Map(wanted) };
  const [questions = 0, documents = 0] = options.sample.split(",").map(Number);
  const parts = new Map(wanted.map(([part, queries]) => [part, spread(queries, questions)]));
  const asked = [...parts.values()].flat();
  const isJudged = ({ id, content }: JudgedDocument): boolean =>
    asked.some(({ relevance }) => relevance({ resourceId: id, start: 0, end: content.length }).length > 0);
  const { judged = [], others = [] } = Object.groupBy(set.documents, (each) =>
    isJudged(each) ? "judged" : "others",
  );
  return { ...set, parts, documents: [...judged, ...spread(others, documents - judged.length)] };
}

function spread<T>(items: readonly T[], count: number): readonly T[] {
  if (items.length <= count) return items;
  return items.filter(
    (_, at) => Math.floor(((at + 1) * count) / items.length) > Math.floor((at * count) / items.length),
  );
}

interface Filled {
  readonly scope: Scope;
  readonly places: ReadonlyMap<string, FoundPlace>;
}

/** Puts the documents into the store once, in `high_accuracy`: the other tiers look at less of it. */
async function fill(
  store: Store,
  documents: readonly JudgedDocument[],
  embedder: Embedder | undefined,
): Promise<Filled> {
  const account = await store.records.ensureAccount("bench");
  const places = new Map<string, FoundPlace>();
  for (const { id, title, content } of documents) {
    const spans = chunkRecursive(content, DEFAULT_SETTINGS);
    const texts = spans.map(({ start, end }) => content.slice(start, end));
    const contexts = spans.map(({ headings }, at) =>
      embeddingText({ title, headings, text: texts[at] ?? "" }),
    );
    await store.records.createResource(
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
      },
      {
        spans,
        vectors: await embedder?.embed(contexts),
        fingerprint: embedder?.fingerprint,
        sentences:
          embedder && tiers.includes("high_accuracy") ? await embedSentences(embedder, texts) : undefined,
      },
    );
    const stored = await store.records.chunks({ accountId: account.id, id });
    for (const { id: chunkId, start, end } of stored?.chunks ?? []) {
      places.set(chunkId, { resourceId: id, start, end });
    }
  }
  const collection = (await store.records.collections(account.id)).find(
    ({ tier }) => tier === "high_accuracy",
  );
  return { scope: { accountId: account.id, collectionId: collection?.id ?? "", ownerId: "bench" }, places };
}

/** A chunk of an answer. */
interface Hit {
  readonly place: FoundPlace;
  readonly score: number;
}

async function answerAll(
  store: Store,
  { scope, places }: Filled,
  tier: Tier,
  embedder: Embedder | undefined,
  reranker: Reranker | undefined,
  queries: readonly JudgedQuery[],
): Promise<Hit[][]> {
  const answers: Hit[][] = [];
  for (const { text } of queries) {
    const request = { scope, tier, query: text, topK: TOP_K, scoreMin: undefined };
    const { results } = await search(store.index, embedder, request, reranker);
    answers.push(
      results.flatMap(({ id, score }) => {
        const place = places.get(id);
        return place === undefined ? [] : { place, score };
      }),
    );
  }
  return answers;
}

/** Mean nDCG@10 and recall over the queries. A thing to be found counts where it is first found. */
function quality(set: JudgedSet, queries: readonly JudgedQuery[], answers: readonly Hit[][]): string[] {
  let gain = 0;
  let recall = 0;
  for (const [at, { relevance, wanted }] of queries.entries()) {
    const found = new Set<number>();
    const documents = new Set<string>();
    let rank = 0;
    let gained = 0;
    for (const { place } of answers[at] ?? []) {
      if (set.ranked === "documents" && documents.has(place.resourceId)) continue;
      documents.add(place.resourceId);
      const fresh = relevance(place).filter((number) => !found.has(number));
      for (const number of fresh) found.add(number);
      if (fresh.length > 0 && rank < SEEN) gained += 1 / Math.log2(rank + 2);
      rank++;
    }
    let ideal = 0;
    for (let place = 0; place < Math.min(SEEN, wanted); place++) ideal += 1 / Math.log2(place + 2);
    gain += gained / ideal;
    recall += found.size / wanted;
  }
  return [(gain / queries.length).toFixed(4), (recall / queries.length).toFixed(4)];
}

/** A score, and whether the chunk was relevant. */
interface Truth {
  readonly score: number;
  readonly isRelevant: boolean;
}

/** The first results of each query; every second query asks for what is not there: its relevant results are taken away. */
function truthsOf(queries: readonly JudgedQuery[], answers: readonly Hit[][]): Truth[] {
  return queries.flatMap(({ relevance }, at) => {
    const judged = (answers[at] ?? []).map(({ place, score }) => ({
      score,
      isRelevant: relevance(place).length > 0,
    }));
    return judged.filter(({ isRelevant }) => at % 2 === 1 || !isRelevant).slice(0, SEEN);
  });
}

/** Share of relevant results by score. */
function printTruth(tier: Tier, truths: readonly Truth[]): void {
  const bounds = [0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0001];
  const rows = bounds.slice(1).flatMap((to, at) => {
    const from = bounds[at] ?? 0;
    const within = truths.filter(({ score }) => score >= from && score < to);
    if (within.length === 0) return [];
    const relevant = within.filter(({ isRelevant }) => isRelevant).length;
    const mean = within.reduce((sum, { score }) => sum + score, 0) / within.length;
    const range = `${from} to ${Math.min(1, to)}`;
    return [[range, String(within.length), mean.toFixed(2), (relevant / within.length).toFixed(2)]];
  });
  console.log(`\n${tier}: scores against the truth`);
  printTable(["score", "results", "mean score", "relevant"], rows);
  const all = truths.filter(({ isRelevant }) => isRelevant).length;
  const kept = truths.filter(({ score }) => score >= 0.5);
  const right = kept.filter(({ isRelevant }) => isRelevant).length;
  const [precision, recall] = [right / kept.length, right / all];
  const f1 = (2 * precision * recall) / (precision + recall);
  const figures = [precision, recall, f1].map((share) => share.toFixed(2)).join(" / ");
  console.log(`\nfrom 0.5 on: precision / recall / F1 ${figures}`);
}

/** What a tier costs to take in: seconds in the model for the same texts, in turn. */
async function measureIngest(embedder: Embedder): Promise<void> {
  const documents = (judgedSets()[0]?.documents ?? []).slice(0, 40);
  const chunks = documents.flatMap(({ title, content }) =>
    chunkRecursive(content, DEFAULT_SETTINGS).map(({ start, end, headings }) => ({
      title,
      headings,
      text: content.slice(start, end),
    })),
  );
  let whole = 0;
  let sentences = 0;
  for (let at = 0; at < chunks.length; at += 4) {
    const step = chunks.slice(at, at + 4);
    const start = performance.now();
    await embedder.embed(step.map((chunk) => embeddingText(chunk)));
    const between = performance.now();
    await embedSentences(
      embedder,
      step.map(({ text }) => text),
    );
    whole += between - start;
    sentences += performance.now() - between;
  }
  console.log(
    `\n${chunks.length} chunks: ${(whole / chunks.length).toFixed(0)} ms a chunk for its vector, ` +
      `${(sentences / chunks.length).toFixed(0)} ms for those of its sentences ` +
      `(high_accuracy costs ${((whole + sentences) / whole).toFixed(2)} times moderate)`,
  );
}

await main();
