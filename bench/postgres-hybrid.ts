/**
 * `moderate` on PostgreSQL beside pgvector and `tsvector` in one table, on the same server, over the same chunks with the same vectors:
 * ingest, disk, latency and recall of the nearest vectors over generated chunks, and nDCG@10 and recall over the judged sets. Run:
 * `KBSYNC_TEST_PGVECTOR=PROGRAMS node bench/postgres-hybrid.ts [CHUNKS]`; default 100,000, which takes some ten minutes on two idle cores.
 */
import { loadavg } from "node:os";
import { Client } from "pg";
import type { Embedder } from "../src/kb/embed/embedder.ts";
import { openLocalEmbedder } from "../src/kb/embed/local.ts";
import { FUSED_DEPTH } from "../src/kb/search/fuse.ts";
import { search } from "../src/kb/search/search.ts";
import { openPostgresStore } from "../src/kb/store/postgres/open.ts";
import type { Scope } from "../src/kb/store/search-index.ts";
import type { Store } from "../src/kb/store/store.ts";
import { findPgvector, startCluster, type Cluster } from "../test/kb/store/postgres/cluster.ts";
import {
  createAll,
  DIMENSIONS,
  embedder as random,
  makeDocuments,
  makeQuestions,
  openAccount,
  type Document,
} from "./corpus.ts";
import type { FoundSpan, JudgedSet } from "./judged-sets.ts";
import { judgedSets } from "./judged-sets.ts";
import { fill as fillJudged, type StoredChunk } from "./judged-store.ts";
import { mean, qualityOf } from "./ranking-quality.ts";
import { median, printTable, quantile } from "./report.ts";
import { withVectorCache } from "./vector-cache.ts";

const CHUNKS = 100_000;
const TIER = "moderate";
const QUESTIONS = 60;
const TOP = 10;
/** Results of which nDCG and recall are taken. */
const DEPTH = 100;

/**
 * How the two lists of the peer are made and fused: both add the reciprocal ranks. One asks for all words and weighs the lists alike,
 * as LangChain's hybrid search does by default; the other weighs meaning five times as much, as R2R does. The third asks for any of the
 * words, which is kinder to questions in sentences.
 */
const PEERS = [
  { name: "all words, 1 : 1, k 60", query: "plainto_tsquery('english', $1)", vectors: 1, k: 60 },
  { name: "all words, 5 : 1, k 50", query: "websearch_to_tsquery('english', $1)", vectors: 5, k: 50 },
  {
    name: "any word, 1 : 1, k 60",
    query: "replace(plainto_tsquery('english', $1)::text, ' & ', ' | ')::tsquery",
    vectors: 1,
    k: 60,
  },
] as const;

async function main(): Promise<void> {
  const chunks = Number(process.argv[2] ?? CHUNKS);
  const programs = findPgvector();
  if ("missing" in programs) return console.log(programs.missing);
  const cluster = startCluster(programs.folder);
  try {
    const version = cluster.sql("SELECT version()").trim();
    console.log(`\n${chunks} chunks; load of the machine ${loadavg()[0]?.toFixed(1)}; ${version}\n`);
    await compareSpeed(cluster, chunks);
    await compareQuality(cluster);
  } finally {
    await cluster.remove();
  }
}

/** Ingest, disk, latency and recall of the nearest vectors, over generated chunks. */
async function compareSpeed(cluster: Cluster, chunks: number): Promise<void> {
  const documents = takeDocuments(chunks);
  const store = await newStore(cluster, "own");
  const { accountId } = await openAccount(store);
  const ownMs = await timed(() => createAll(store, accountId, TIER, documents, () => true));
  const { scopeOf } = await openAccount(store);
  const scope = scopeOf(TIER);
  const peer = await newPeer(cluster, "peer");
  const peerMs = await fillPeer(peer, documents);
  const questions = (["rare", "mixed", "common"] as const).flatMap((kind) =>
    makeQuestions(kind, QUESTIONS / 3),
  );
  const vectors = await random.embed(questions);
  const asked = questions.map((text, at) => ({ text, vector: vectors[at] ?? new Float32Array(DIMENSIONS) }));
  const rows = [
    [
      "kbsync",
      ...(await measure(asked, async (question) => askOwn({ store, scope, model: random }, question, TOP))),
    ],
    ...(await inTurn(PEERS, async (way) => [
      way.name,
      ...(await measure(asked, async (question) => askPeer(peer, way, question, TOP))),
    ])),
  ];
  const nearest = await recallOfNearest(peer, store, scope, asked);
  await store.close();
  await peer.end();
  const perChunk = (database: string): string =>
    (Number(cluster.sql(`SELECT pg_database_size('${database}')`)) / chunks).toFixed(0);
  printTable(
    ["", "kbsync", "pgvector and `tsvector`"],
    [
      ["chunks/s, written and indexed", rate(chunks, ownMs), rate(chunks, peerMs)],
      ["bytes a chunk on disk", perChunk("own"), perChunk("peer")],
      ["recall of the 10 nearest vectors", nearest.own.toFixed(3), nearest.peer.toFixed(3)],
    ],
  );
  console.log("");
  printTable(["latency in ms, without the model", "p50", "p99"], rows);
}

/** Documents with so many chunks, made ahead: both sides take the same vectors. */
function takeDocuments(wanted: number): Document[] {
  const documents: Document[] = [];
  let chunks = 0;
  for (const document of makeDocuments(TIER)) {
    if (chunks >= wanted) break;
    documents.push(document);
    chunks += document.chunking.spans.length;
  }
  return documents;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
}

const rate = (chunks: number, ms: number): string => ((chunks * 1000) / ms).toFixed(0);

interface Question {
  readonly text: string;
  readonly vector: Float32Array;
}

/** Median and 99th percentile; the first round only fills the caches. */
async function measure(
  questions: readonly Question[],
  ask: (question: Question) => Promise<unknown>,
): Promise<string[]> {
  for (const question of questions) await ask(question);
  const times: number[] = [];
  for (const question of questions) times.push(await timed(() => ask(question)));
  return [median(times).toFixed(1), quantile(times, 0.99).toFixed(1)];
}

async function askOwn(
  { store, scope, model }: { readonly store: Store; readonly scope: Scope; readonly model: Embedder },
  { text, vector }: Question,
  topK: number,
) {
  const embedder: Embedder = { ...model, embed: async () => [vector] };
  return search(store.index, embedder, { scope, tier: TIER, query: text, topK, scoreMin: undefined });
}

/** Both lists, fused by the reciprocal of their ranks, as one statement. */
async function askPeer(
  client: Client,
  { query, vectors, k }: (typeof PEERS)[number],
  { text, vector }: Question,
  topK: number,
): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(
    `WITH near AS (
        SELECT id, row_number() OVER () AS rank
        FROM (SELECT id FROM chunk ORDER BY vector <=> $2::vector LIMIT $3) AS nearest
      ), worded AS (
        SELECT id, row_number() OVER () AS rank
        FROM (
          SELECT id FROM chunk, (SELECT ${query} AS query) AS asked WHERE words @@ query
          ORDER BY ts_rank_cd(words, query) DESC LIMIT $3
        ) AS ranked
      )
      SELECT id FROM near FULL JOIN worded USING (id)
      ORDER BY ${vectors} * coalesce(1.0 / (${k} + near.rank), 0) + coalesce(1.0 / (${k} + worded.rank), 0) DESC LIMIT $3`,
    [text, JSON.stringify([...vector]), topK],
  );
  return rows.map(({ id }) => id);
}

/** Shares of the truly nearest chunks that the HNSW index and our scan of codes find. The chunks of both have the same vectors. */
async function recallOfNearest(peer: Client, store: Store, scope: Scope, questions: readonly Question[]) {
  const own: number[] = [];
  const indexed: number[] = [];
  for (const { vector } of questions) {
    const wanted = [JSON.stringify([...vector]), TOP];
    const nearest = "SELECT text FROM chunk ORDER BY vector <=> $1::vector LIMIT $2";
    const found = await peer.query<{ text: string }>(nearest, wanted);
    await peer.query("BEGIN; SET LOCAL enable_indexscan = off");
    const exact = await peer.query<{ text: string }>(nearest, wanted);
    await peer.query("COMMIT");
    const texts = new Set(exact.rows.map(({ text }) => text));
    indexed.push(found.rows.filter(({ text }) => texts.has(text)).length / TOP);
    const { nearest: hits = [] } = await store.index.evidence({
      scope,
      lexical: { query: "", limit: 1 },
      nearest: { vector, fingerprint: random.fingerprint, limit: FUSED_DEPTH },
      depth: TOP,
      withChunks: false,
    });
    const chunks = await store.index.foundChunks(
      scope,
      hits.slice(0, TOP).map(({ ref }) => ref),
    );
    own.push(chunks.filter(({ text }) => texts.has(text)).length / TOP);
  }
  return { own: mean(own), peer: mean(indexed) };
}

/** nDCG@10 and recall in the first results, over the judged sets, with the embedded model. */
async function compareQuality(cluster: Cluster): Promise<void> {
  const model = await openLocalEmbedder({});
  if (!("embed" in model)) return console.log(`judged sets skipped: ${model.reason}`);
  const embedder = withVectorCache(model);
  const rows: string[][] = [];
  for (const [at, set] of judgedSets().entries())
    rows.push(...(await judge(cluster, set, embedder, `judged_${at}`)));
  await embedder.close();
  console.log("");
  printTable(["judged set", "", "nDCG@10", `recall@${DEPTH}`], rows);
}

async function judge(
  cluster: Cluster,
  set: JudgedSet,
  embedder: Embedder,
  database: string,
): Promise<string[][]> {
  const store = await newStore(cluster, database);
  const { scope, chunks } = await fillJudged(store, set.documents, embedder, false);
  const peer = await newPeer(cluster, `${database}_peer`);
  await insert(
    peer,
    [...chunks].map(([id, { text, vector }]) => ({ id, text, vector })),
  );
  await finish(peer);
  const queries = [...set.parts.values()].flat();
  const vectors = await embedder.embed(queries.map(({ text }) => text));
  const line = async (name: string, ask: (question: Question) => Promise<readonly FoundSpan[]>) => {
    const found = await inTurn(queries, async (query, at) =>
      qualityOf(set, query, await ask({ text: query.text, vector: vectors[at] ?? new Float32Array() })),
    );
    const means = [found.map(({ ndcg }) => ndcg), found.map(({ recall }) => recall)].map(mean);
    return [set.name, name, ...means.map((value) => value.toFixed(3))];
  };
  const spanOf = (id: string): FoundSpan[] => [chunks.get(id)?.span].filter((span) => span !== undefined);
  const rows = [
    await line("kbsync", async (question) => {
      const { chunks: found } = await askOwn({ store, scope, model: embedder }, question, DEPTH);
      return found.map(({ resourceId, start, end }) => ({ resourceId, start, end }));
    }),
    ...(await inTurn(PEERS, async (way) =>
      line(way.name, async (question) => (await askPeer(peer, way, question, DEPTH)).flatMap(spanOf)),
    )),
  ];
  await store.close();
  await peer.end();
  return rows;
}

async function newStore(cluster: Cluster, name: string): Promise<Store> {
  cluster.sql(`CREATE DATABASE ${name}`);
  return openPostgresStore(cluster.url(name));
}

/** A table with a column of pgvector, one of words, and an index of each. */
async function newPeer(cluster: Cluster, name: string): Promise<Client> {
  cluster.sql(`CREATE DATABASE ${name}`);
  const client = new Client({ connectionString: cluster.url(name) });
  // A run that failed stops the server first; its own error is the one to show.
  client.on("error", () => undefined);
  await client.connect();
  await client.query(`CREATE EXTENSION vector; CREATE TABLE chunk (
    id text PRIMARY KEY, text text NOT NULL, vector vector(${DIMENSIONS}) NOT NULL,
    words tsvector GENERATED ALWAYS AS (to_tsvector('english', text)) STORED)`);
  return client;
}

/** Writes the chunks, one document a statement, and makes the indexes; returns the milliseconds. */
async function fillPeer(client: Client, documents: readonly Document[]): Promise<number> {
  let written = 0;
  const tables = documents.map(({ text, chunking: { spans, vectors } }) =>
    spans.map(({ start, end }, at) => ({
      id: String(written++),
      text: text.slice(start, end),
      vector: vectors?.[at],
    })),
  );
  return timed(async () => {
    for (const chunks of tables) await insert(client, chunks);
    await finish(client);
  });
}

async function insert(
  client: Client,
  chunks: readonly (Omit<StoredChunk, "span"> & { readonly id: string })[],
): Promise<void> {
  await client.query(
    "INSERT INTO chunk (id, text, vector) SELECT id, text, vector::vector FROM unnest($1::text[], $2::text[], $3::text[]) AS new (id, text, vector)",
    [
      chunks.map(({ id }) => id),
      chunks.map(({ text }) => text),
      chunks.map(({ vector }) => JSON.stringify([...(vector ?? [])])),
    ],
  );
}

/** Indexes after the load: kinder to the peer than an index that each insert changes. */
async function finish(client: Client): Promise<void> {
  await client.query("SET maintenance_work_mem = '1GB'");
  await client.query("CREATE INDEX ON chunk USING hnsw (vector vector_cosine_ops)");
  await client.query("CREATE INDEX ON chunk USING gin (words)");
  await client.query("VACUUM ANALYZE chunk");
  // The index finds no more than so many of the nearest.
  await client.query(`SET hnsw.ef_search = ${DEPTH}`);
}

async function inTurn<In, Out>(items: readonly In[], take: (item: In, at: number) => Promise<Out>) {
  const taken: Out[] = [];
  for (const [at, item] of items.entries()) taken.push(await take(item, at));
  return taken;
}

await main();
