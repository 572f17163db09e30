/**
 * Retrieval quality on five judged sets: nDCG@10 and recall in the first 100 chunks for the tiers, each answered as the service
 * answers a search, beside baselines that are measured in the same run. Run:
 *
 *     node bench/retrieval.ts [--set NAME] [--part NAME] [--tiers LIST] [--sample QUESTIONS,DOCUMENTS] [--ingest]
 *       [--embedding BASE_URL --embedding-model NAME [--embedding-key FILE]]
 *       [--reranker URL --reranker-model NAME [--reranker-key FILE]]
 *
 * `--sample` takes so many questions of each part, spread over it, and so many documents: those judged relevant to the questions, and others.
 * `--tiers fastest` needs no model and `--tiers fastest,moderate` no sentences, `--ingest` prints what each tier costs to take in.
 * Without `--part`, SciFact's `test` is asked, which nothing is fitted on. Vectors are kept in the temporary folder: making them takes minutes.
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
import { DEFAULT_SETTINGS, Tier } from "../src/wire/primitives.ts";
import { openBaselines, type Unit } from "./baselines.ts";
import { documentationSet } from "./docs-sample.ts";
import { judgedSets } from "./judged-sets.ts";
import type { FoundSpan, JudgedQuery, JudgedSet } from "./judged-sets.ts";
import { fill, type Filled } from "./judged-store.ts";
import { mean, qualityOf, type Quality } from "./ranking-quality.ts";
import { printTable } from "./report.ts";
import { sampleOf } from "./sample.ts";
import { randomisationP } from "./significance.ts";
import { withVectorCache } from "./vector-cache.ts";

/** What a search may be asked for at most. */
const TOP_K = 100;
/** Published, or measured by others on the same data. */
const ANCHORS: Readonly<Record<string, readonly string[][]>> = {
  SciFact: [
    ["published: BM25 (Pyserini)", "0.679"],
    ["published: bge-base-en-v1.5", "0.741"],
    ["published: its fusion with BM25", "0.747"],
  ],
};

const { values: options } = parseArgs({
  options: {
    set: { type: "string" },
    part: { type: "string" },
    tiers: { type: "string", default: "fastest,moderate,high_accuracy" },
    sample: { type: "string" },
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

/** What ranks: a tier or a baseline. */
type System = Tier | "BM25" | "min-max";

/** Which system each one has to be compared with. */
const COMPARED: readonly (readonly [System, System])[] = [
  ["fastest", "BM25"],
  ["moderate", "fastest"],
  ["moderate", "min-max"],
  ["high_accuracy", "moderate"],
];

/** The quality of each system's answers, in the order of the queries. */
type Measured = ReadonlyMap<System, readonly Quality[]>;

async function main(): Promise<void> {
  const embedder = tiers.some((tier) => tier !== "fastest") ? await findEmbedder() : undefined;
  const reranker = findReranker();
  try {
    const documentation = documentationSet();
    const sets = [...judgedSets(), ...(documentation === undefined ? [] : [documentation])];
    const measured: [string, Measured][] = [];
    for (const set of sets) {
      if (options.set !== undefined && !set.name.includes(options.set)) continue;
      const asked = sampleOf(set, options);
      const found = await measureSet(asked, embedder && withVectorCache(embedder), reranker);
      measured.push([set.name, found]);
      printSet(asked, found);
    }
    printComparison(measured);
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

function keyOf(file: string | undefined): (() => string) | undefined {
  return file === undefined ? undefined : () => readFileSync(file, "utf8").trim();
}

async function measureSet(
  set: JudgedSet,
  embedder: Embedder | undefined,
  reranker: Reranker | undefined,
): Promise<Measured> {
  const queries = [...set.parts.values()].flat();
  const store = await openSqliteStore();
  try {
    const filled = await fill(store, set.documents, embedder, tiers.includes("high_accuracy"));
    const measured = new Map<System, readonly Quality[]>();
    for (const tier of tiers) {
      if (tier !== "fastest" && embedder === undefined) continue;
      const answers = await answerAll(store, filled, tier, embedder, reranker, queries);
      measured.set(
        tier,
        answers.map((spans, at) => qualityOf(set, queries[at] as JudgedQuery, spans)),
      );
    }
    for (const each of await measureBaselines(set, queries, filled, embedder)) measured.set(...each);
    return measured;
  } finally {
    await store.close();
  }
}

async function answerAll(
  store: Store,
  { scope, chunks }: Filled,
  tier: Tier,
  embedder: Embedder | undefined,
  reranker: Reranker | undefined,
  queries: readonly JudgedQuery[],
): Promise<FoundSpan[][]> {
  const answers: FoundSpan[][] = [];
  for (const { text } of queries) {
    const request = { scope, tier, query: text, topK: TOP_K, scoreMin: undefined };
    const { results } = await search(store.index, embedder, request, reranker);
    answers.push(results.flatMap(({ id }) => chunks.get(id)?.span ?? []));
  }
  return answers;
}

async function measureBaselines(
  set: JudgedSet,
  queries: readonly JudgedQuery[],
  filled: Filled,
  embedder: Embedder | undefined,
): Promise<[System, Quality[]][]> {
  const baselines = openBaselines(unitsOf(set, filled));
  try {
    const words = queries.map((query) => qualityOf(set, query, baselines.words(query.text)));
    if (embedder === undefined) return [["BM25", words]];
    const vectors = await embedder.embed(queries.map(({ text }) => text));
    const fused = queries.map((query, at) =>
      qualityOf(set, query, baselines.fusion(query.text, vectors[at] ?? new Float32Array())),
    );
    return [
      ["BM25", words],
      ["min-max", fused],
    ];
  } finally {
    baselines.close();
  }
}

/** What the baselines rank: whole documents, with the vectors of their chunks, or the chunks. */
function unitsOf({ ranked, documents }: JudgedSet, { chunks }: Filled): Unit[] {
  const all = [...chunks.values()];
  const vectorsOf = (each: (typeof all)[number]): Float32Array[] =>
    each.vector === undefined ? [] : [each.vector];
  if (ranked === "chunks")
    return all.map((chunk) => ({ span: chunk.span, text: chunk.text, vectors: vectorsOf(chunk) }));
  const byDocument = Map.groupBy(all, ({ span }) => span.resourceId);
  return documents.map(({ id, content }) => ({
    span: { resourceId: id, start: 0, end: content.length },
    text: content,
    vectors: (byDocument.get(id) ?? []).flatMap(vectorsOf),
  }));
}

function printSet({ name, documents, parts }: JudgedSet, measured: Measured): void {
  const asked = [...parts].map(([part, queries]) => `${queries.length} questions (${part})`).join(", ");
  console.log(`\n${name}: ${documents.length} documents, ${asked}`);
  const rows = [...measured].map(([system, answers]) => [
    system,
    mean(answers.map(({ ndcg }) => ndcg)).toFixed(4),
    mean(answers.map(({ recall }) => recall)).toFixed(4),
  ]);
  printTable(["", "nDCG@10", "recall@100"], [...rows, ...(ANCHORS[name] ?? []).map((row) => row.concat(""))]);
}

/** Prints the differences between systems with their significance: the table of docs/BENCHMARKS.md. */
function printComparison(measured: readonly [string, Measured][]): void {
  console.log("\nnDCG@10 by set, and p of the difference from the system named");
  const systems = ["BM25", "fastest", "min-max", "moderate", "high_accuracy"] as const;
  const ndcg = (answers: readonly Quality[] | undefined): number[] =>
    (answers ?? []).map((quality) => quality.ndcg);
  const rows = measured.map(([name, found]) => [
    name,
    ...systems.map((system) => (found.has(system) ? mean(ndcg(found.get(system))).toFixed(3) : "")),
    ...COMPARED.map(([system, other]) => {
      const [own, its] = [ndcg(found.get(system)), ndcg(found.get(other))];
      if (own.length === 0 || its.length === 0) return "";
      const differences = own.map((value, at) => value - (its[at] ?? 0));
      const p = randomisationP(differences);
      return `${mean(differences) >= 0 ? "+" : "−"}${Math.abs(mean(differences)).toFixed(3)} (p ${p < 0.001 ? "< .001" : p.toFixed(3)})`;
    }),
  ]);
  printTable(["", ...systems, ...COMPARED.map(([system, other]) => `${system} − ${other}`)], rows);
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
