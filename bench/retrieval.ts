/**
 * Retrieval quality on SciFact (BEIR): nDCG@10 and recall@100 of the best chunk of each document, for the tiers, beside
 * published and measured anchors. Run: `node bench/retrieval.ts [--words] [--fit]`; `--words` leaves the model out,
 * `--fit` prints the calibration of scores fitted on the train queries. Nothing is ever fitted on the test queries.
 * Vectors of the corpus are kept in the temporary folder: making them takes minutes.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openLocalEmbedder } from "../src/kb/embed/local.ts";
import type { Embedder } from "../src/kb/embed/embedder.ts";
import { chunkRecursive } from "../src/kb/ingest/chunk/recursive.ts";
import { fuse, FUSED_DEPTH } from "../src/kb/search/fuse.ts";
import { fusedEvidence, lexicalEvidence } from "../src/kb/search/score.ts";
import { openSqliteStore } from "../src/kb/store/sqlite/open.ts";
import type { Scope, Store } from "../src/kb/store/store.ts";
import { DEFAULT_SETTINGS } from "../src/wire/primitives.ts";
import { printTable } from "./report.ts";

const folder = join(import.meta.dirname, "..", "..", "shared", "data", "scifact");
/** Chunks asked for by words alone: enough for a hundred documents. */
const WORDS_DEPTH = 250;
/** Results of a query that the calibration looks at: those that people see. */
const CALIBRATED_DEPTH = 10;

interface Judged {
  readonly id: string;
  readonly text: string;
  readonly relevant: ReadonlySet<string>;
}

/** A document in a ranking, with the evidence for its best chunk. */
interface RankedDocument {
  readonly id: string;
  readonly evidence: number;
}

type Ranker = (query: string) => Promise<RankedDocument[]>;

async function main(): Promise<void> {
  if (!existsSync(folder)) {
    console.log(`skipped: the SciFact data is not at ${folder}`);
    return;
  }
  const embedder = process.argv.includes("--words") ? undefined : await findEmbedder();
  const store = await openSqliteStore();
  try {
    const scope = await fill(store, embedder);
    const tiers: [name: string, rank: Ranker][] = [["fastest", rankByWords(store, scope)]];
    if (embedder !== undefined) tiers.push(["moderate", rankByBoth(store, scope, embedder)]);
    const rows: string[][] = [];
    for (const [name, rank] of tiers)
      rows.push([name, ...(await measure(rank, "train")), ...(await measure(rank, "test"))]);
    printTable(
      ["", "train nDCG@10", "train recall@100", "test nDCG@10", "test recall@100"],
      [
        ...rows,
        ["anchor: FTS5 BM25, whole documents", "", "", "0.687", ""],
        ["anchor: all-MiniLM-L6-v2, whole documents", "", "", "0.637", ""],
        ["anchor: their min-max mean", "", "", "0.729", ""],
        ["published: BM25 (Pyserini)", "", "", "0.679", ""],
      ],
    );
    if (process.argv.includes("--fit")) {
      for (const [name, rank] of tiers) console.log(name, await fit(rank));
    }
  } finally {
    await store.close();
    await embedder?.close();
  }
}

async function findEmbedder(): Promise<Embedder | undefined> {
  const found = await openLocalEmbedder({});
  if ("embed" in found) return found;
  console.log(`moderate skipped: ${found.reason}`);
  return undefined;
}

/** Puts the corpus into the store: title and abstract make the text, the title is the resource's. */
async function fill(store: Store, embedder: Embedder | undefined): Promise<Scope> {
  const account = await store.ensureAccount("bench");
  const documents = lines("corpus.jsonl").map(({ id, title, text }) => {
    const content = `${title}

${text}`;
    return { id, title, content, spans: chunkRecursive(content, DEFAULT_SETTINGS) };
  });
  const texts = documents.flatMap(({ content, spans }) =>
    spans.map(({ start, end }) => content.slice(start, end)),
  );
  const vectors = embedder === undefined ? undefined : await embedAll(embedder, texts);
  let from = 0;
  await Promise.all(
    documents.map(({ id, title, content, spans }) => {
      const own = vectors?.slice(from, (from += spans.length));
      return store.createResource(
        {
          accountId: account.id,
          id: id.padStart(24, "0"),
          tier: "moderate",
          ownerId: "bench",
          origin: "content",
          title,
          description: "",
          url: null,
          content,
          settings: DEFAULT_SETTINGS,
          createdAt: "2026-01-01T00:00:00.000Z",
        },
        { spans, vectors: own, fingerprint: embedder?.fingerprint },
      );
    }),
  );
  const collection = (await store.collections(account.id)).find(({ tier }) => tier === "moderate");
  console.log(`${documents.length} documents, ${collection?.chunks} chunks`);
  return { accountId: account.id, collectionId: collection?.id ?? "", ownerId: "bench" };
}

async function embedAll(embedder: Embedder, texts: readonly string[]): Promise<Float32Array[]> {
  const hash = createHash("sha256").update(embedder.fingerprint).update(texts.join("\0")).digest("hex");
  const kept = join(tmpdir(), `kbsync-bench-${hash.slice(0, 16)}.f32`);
  const size = embedder.dimensions;
  if (!existsSync(kept)) {
    const all = new Float32Array(texts.length * size);
    for (let at = 0; at < texts.length; at += 64) {
      const vectors = await embedder.embed(texts.slice(at, at + 64));
      for (const [index, vector] of vectors.entries()) all.set(vector, (at + index) * size);
      if (at % 1024 === 0) console.log(`embedded ${at} of ${texts.length} chunks`);
    }
    writeFileSync(kept, new Uint8Array(all.buffer));
  }
  const all = new Float32Array(Uint8Array.from(readFileSync(kept)).buffer);
  return texts.map((_, at) => all.slice(at * size, (at + 1) * size));
}

function rankByWords(store: Store, scope: Scope): Ranker {
  const documents = documentsOf(store, scope);
  return async (query) => {
    const { hits, ceiling } = await store.lexical({ scope, query, limit: WORDS_DEPTH });
    return documents(hits.map((hit) => ({ row: hit.row, evidence: lexicalEvidence(hit, ceiling) })));
  };
}

function rankByBoth(store: Store, scope: Scope, embedder: Embedder): Ranker {
  const documents = documentsOf(store, scope);
  return async (query) => {
    const [vector = new Float32Array()] = await embedder.embed([query]);
    const { fingerprint } = embedder;
    const { hits, ceiling } = await store.lexical({ scope, query, limit: FUSED_DEPTH });
    const nearest = await store.nearest({ scope, vector, fingerprint, limit: FUSED_DEPTH });
    const lexicalBest = lexicalEvidence(hits[0], ceiling);
    const cosineBest = nearest[0]?.cosine ?? 0;
    return documents(
      fuse(hits, nearest).map(({ row, mix }) => ({
        row,
        evidence: fusedEvidence(mix, lexicalBest, cosineBest),
      })),
    );
  };
}

/** Turns ranked chunks into ranked documents, each at its best chunk. */
function documentsOf(
  store: Store,
  scope: Scope,
): (chunks: readonly { readonly row: number; readonly evidence: number }[]) => Promise<RankedDocument[]> {
  return async (chunks) => {
    const found = await store.chunksByRow(
      scope,
      chunks.map(({ row }) => row),
    );
    const ids = new Map(found.map(({ row, resourceId }) => [row, resourceId.replace(/^0+(?=.)/, "")]));
    const best = new Map<string, number>();
    for (const { row, evidence } of chunks) {
      const id = ids.get(row);
      if (id !== undefined && !best.has(id)) best.set(id, evidence);
    }
    return [...best].map(([id, evidence]) => ({ id, evidence }));
  };
}

async function measure(rank: Ranker, set: "train" | "test"): Promise<string[]> {
  let gain = 0;
  let recall = 0;
  const queries = judged(set);
  for (const { text, relevant } of queries) {
    const ranking = await rank(text);
    const places = ranking.slice(0, 10).map(({ id }, at) => (relevant.has(id) ? 1 / Math.log2(at + 2) : 0));
    const ideal = [...relevant].slice(0, 10).map((_, at) => 1 / Math.log2(at + 2));
    gain += sum(places) / sum(ideal);
    recall += ranking.slice(0, 100).filter(({ id }) => relevant.has(id)).length / relevant.size;
  }
  return [(gain / queries.length).toFixed(4), (recall / queries.length).toFixed(4)];
}

/**
 * Logistic regression of relevance on evidence over the train queries, by Newton's method. Every second query has its
 * relevant documents taken out of the ranking.
 */
async function fit(rank: Ranker): Promise<string> {
  const points: { x: number; y: number }[] = [];
  for (const [at, { text, relevant }] of judged("train").entries()) {
    const ranking = await rank(text);
    const seen = at % 2 === 0 ? ranking.filter(({ id }) => !relevant.has(id)) : ranking;
    for (const { id, evidence } of seen.slice(0, CALIBRATED_DEPTH)) {
      points.push({ x: evidence, y: relevant.has(id) ? 1 : 0 });
    }
  }
  let intercept = 0;
  let slope = 0;
  for (let step = 0; step < 30; step++) {
    const total = { g0: 0, g1: 0, h00: 0, h01: 0, h11: 0 };
    for (const { x, y } of points) {
      const p = 1 / (1 + Math.exp(-(intercept + slope * x)));
      const spread = p * (1 - p);
      total.g0 += y - p;
      total.g1 += (y - p) * x;
      total.h00 += spread;
      total.h01 += spread * x;
      total.h11 += spread * x * x;
    }
    const determinant = total.h00 * total.h11 - total.h01 ** 2;
    intercept += (total.h11 * total.g0 - total.h01 * total.g1) / determinant;
    slope += (total.h00 * total.g1 - total.h01 * total.g0) / determinant;
  }
  return `score = 1 / (1 + exp(-(${intercept.toFixed(2)} + ${slope.toFixed(2)} × evidence))), ${points.length} points`;
}

function judged(set: "train" | "test"): Judged[] {
  const relevant = Map.groupBy(
    readFileSync(join(folder, "qrels", `${set}.tsv`), "utf8")
      .trim()
      .split("\n")
      .slice(1)
      .map((line) => line.split("\t"))
      .filter(([, , grade]) => Number(grade) > 0),
    ([query]) => query ?? "",
  );
  return lines("queries.jsonl")
    .filter(({ id }) => relevant.has(id))
    .map(({ id, text }) => ({
      id,
      text,
      relevant: new Set((relevant.get(id) ?? []).map(([, document]) => document ?? "")),
    }));
}

function lines(name: string): { id: string; title: string; text: string }[] {
  return readFileSync(join(folder, name), "utf8")
    .trim()
    .split("\n")
    .map((line) => {
      const { _id: id, title = "", text } = JSON.parse(line) as { _id: string; title?: string; text: string }; // BEIR's form
      return { id, title, text };
    });
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

await main();
