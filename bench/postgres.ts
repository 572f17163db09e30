/**
 * The store in PostgreSQL, on a server of its own: search by words beside `tsvector` with GIN and `ts_rank_cd`, as LangChain and R2R use
 * it, and beside SQLite, over the same texts; ingest with one, two and four processes; disk; and whether the judged sets have equal
 * scores in both stores. Run: `node bench/postgres.ts [CHUNKS]`; default 100,000, which takes some ten minutes on two idle cores.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client } from "pg";
import { search } from "../src/kb/search/search.ts";
import { openPostgresStore } from "../src/kb/store/postgres/open.ts";
import { openSqliteStore } from "../src/kb/store/sqlite/open.ts";
import type { Scope } from "../src/kb/store/search-index.ts";
import type { Store } from "../src/kb/store/store.ts";
import { findPrograms, startCluster, type Cluster } from "../test/kb/store/postgres/cluster.ts";
import { fill, makeDocuments, makeQuestions, openAccount, type Kind } from "./corpus.ts";
import { judgedSets } from "./judged-sets.ts";
import { fill as fillJudged } from "./judged-store.ts";
import { median, printTable, quantile } from "./report.ts";

const CHUNKS = 100_000;
const KINDS: readonly Kind[] = ["rare", "mixed", "common"];
const QUESTIONS = 60;
/** Questions put to the peer, which takes a hundred times as long. */
const PEER_QUESTIONS = 10;
const WRITERS = [1, 2, 4];
const TOP = 5;
/** Search by words alone. */
const TIER = "fastest";

async function main(): Promise<void> {
  const [first, url, name, wanted] = process.argv.slice(2);
  if (first === "--writer") return write(url ?? "", name ?? "", Number(wanted));
  const chunks = Number(first ?? CHUNKS);
  const programs = findPrograms();
  if ("missing" in programs) return console.log(programs.missing);
  const cluster = startCluster(programs.folder);
  const folder = mkdtempSync(join(tmpdir(), "kbsync-postgres-bench-"));
  try {
    console.log(
      `\n${chunks} chunks; load of the machine ${loadavg()[0]?.toFixed(1)}; ${cluster.sql("SELECT version()").trim()}\n`,
    );
    await compareIngest(cluster, chunks);
    await compareSearch(cluster, join(folder, "kb.sqlite"), chunks);
    await compareScores(cluster, folder);
  } finally {
    await cluster.remove();
    rmSync(folder, { recursive: true });
  }
}

/** Creates a database with the tables of a store. */
async function newDatabase(cluster: Cluster, name: string): Promise<string> {
  cluster.sql(`CREATE DATABASE ${name}`);
  return cluster.url(name);
}

/** One of several processes: opens the store, waits for a line, and writes for an account of its own. */
async function write(url: string, name: string, chunks: number): Promise<void> {
  const store = await openPostgresStore(url);
  const { id } = await store.records.ensureAccount(name);
  const lines = createInterface(process.stdin);
  console.log("ready");
  await once(lines, "line");
  lines.close();
  await fill(store, id, TIER, chunks);
  await store.close();
}

/** Chunks a second with several processes, each with an account of its own, that together write all chunks. */
async function compareIngest(cluster: Cluster, chunks: number): Promise<void> {
  const rows: string[][] = [];
  let alone = Number.NaN;
  for (const writers of WRITERS) {
    const url = await newDatabase(cluster, `ingest_${writers}`);
    const script = [import.meta.filename, "--writer", url];
    const children = Array.from({ length: writers }, (_, at) =>
      spawn(process.execPath, [...script, `bench-${at}`, String(Math.ceil(chunks / writers))], {
        stdio: ["pipe", "pipe", "inherit"],
      }),
    );
    await Promise.all(children.map(({ stdout }) => once(stdout, "data")));
    const begin = performance.now();
    const ends = children.map((child) => once(child, "exit"));
    for (const { stdin } of children) stdin.end("\n");
    for (const [code] of await Promise.all(ends)) if (code !== 0) throw new Error("a writer failed");
    const rate = (chunks * 1000) / (performance.now() - begin);
    if (writers === 1) alone = rate;
    rows.push([String(writers), rate.toFixed(0), (rate / alone).toFixed(2)]);
  }
  printTable(["processes", "chunks/s", "it / one process"], rows);
}

/** Latency of searches of one owner, at rest, and what the stores take on disk. */
async function compareSearch(cluster: Cluster, path: string, chunks: number): Promise<void> {
  const url = await newDatabase(cluster, "search");
  const postgres = await filled(await openPostgresStore(url), chunks);
  const sqlite = await filled(await openSqliteStore({ path }), chunks);
  const peer = await openPeer(await newPeer(cluster), chunks);
  const rows: string[][] = [];
  for (const kind of KINDS) {
    const questions = makeQuestions(kind, QUESTIONS);
    const some = questions.slice(0, PEER_QUESTIONS);
    const own = await latencies(questions, postgres.ask);
    const again = await latencies(questions, postgres.ask);
    const embedded = await latencies(questions, sqlite.ask);
    const ranked = await latencies(some, peer.ask);
    rows.push([
      `${kind} words`,
      spread(own),
      spread(again),
      spread(embedded),
      spread(ranked),
      (median(ranked) / median(again)).toFixed(1),
    ]);
  }
  console.log(
    `\n\`fastest\`, p50 / p99 in ms; the load of one process: ${postgres.rate.toFixed(0)} chunks/s, SQLite ${sqlite.rate.toFixed(0)}\n`,
  );
  printTable(["questions", "asked first", "again", "SQLite", "`ts_rank_cd`", "it / again"], rows);
  await postgres.store.close();
  await sqlite.store.close();
  await peer.close();
  const size = (database: string): number => Number(cluster.sql(`SELECT pg_database_size('${database}')`));
  const perChunk = (bytes: number): string => (bytes / chunks).toFixed(0);
  console.log("");
  printTable(
    ["bytes a chunk on disk", ""],
    [
      ["kbsync in PostgreSQL", perChunk(size("search"))],
      ["kbsync in SQLite", perChunk(statSync(path).size)],
      ["text with a tsvector and its GIN index", perChunk(size("peer"))],
    ],
  );
}

async function filled(store: Store, chunks: number) {
  const { accountId, scopeOf } = await openAccount(store);
  const load = await fill(store, accountId, TIER, chunks);
  const scope = scopeOf(TIER);
  return {
    store,
    rate: (load.chunks * 1000) / load.ms,
    ask: (query: string) => askWords(store, scope, query, TOP),
  };
}

async function askWords(store: Store, scope: Scope, query: string, topK: number) {
  return search(store.index, undefined, { scope, tier: TIER, query, topK, scoreMin: undefined });
}

async function newPeer(cluster: Cluster): Promise<Client> {
  cluster.sql("CREATE DATABASE peer");
  const client = new Client({ connectionString: cluster.url("peer") });
  await client.connect();
  return client;
}

/** The same chunks in a table with a generated tsvector and a GIN index. */
async function openPeer(client: Client, chunks: number) {
  await client.query(
    "CREATE TABLE chunk (id bigserial PRIMARY KEY, text text NOT NULL, words tsvector GENERATED ALWAYS AS (to_tsvector('english', text)) STORED)",
  );
  let written = 0;
  for (const { text, chunking } of makeDocuments(TIER)) {
    if (written >= chunks) break;
    const texts = chunking.spans.map(({ start, end }) => text.slice(start, end));
    written += texts.length;
    await client.query("INSERT INTO chunk (text) SELECT unnest($1::text[])", [texts]);
  }
  await client.query("CREATE INDEX ON chunk USING gin (words)");
  await client.query("VACUUM ANALYZE chunk");
  return {
    ask: async (query: string) =>
      client.query(
        "SELECT id FROM chunk, to_tsquery('english', $1) AS query WHERE words @@ query ORDER BY ts_rank_cd(words, query) DESC LIMIT $2",
        [(query.match(/\w+/g) ?? []).join(" | "), TOP],
      ),
    close: () => client.end(),
  };
}

/** Whether all questions of the judged sets have the same documents with the same scores in both stores. */
async function compareScores(cluster: Cluster, folder: string): Promise<void> {
  const rows: string[][] = [];
  for (const [at, { name, documents, parts }] of judgedSets().entries()) {
    const stores = [
      await openPostgresStore(await newDatabase(cluster, `judged_${at}`)),
      await openSqliteStore({ path: join(folder, `judged-${at}.sqlite`) }),
    ];
    const sides = [];
    for (const store of stores)
      sides.push({ store, ...(await fillJudged(store, documents, undefined, false)) });
    const questions = [...parts.values()].flat();
    let equal = 0;
    for (const { text } of questions) {
      const found = [];
      for (const { store, scope } of sides) {
        const { results } = await askWords(store, scope, text, 10);
        found.push(JSON.stringify(results.map(({ payload, score }) => [payload.resourceId, score])));
      }
      if (found[0] === found[1]) equal += 1;
    }
    for (const store of stores) await store.close();
    rows.push([name, String(questions.length), String(equal)]);
  }
  console.log("");
  printTable(["judged set", "questions", "with the same results and scores in both stores"], rows);
}

/** Milliseconds of each question, one after another. */
async function latencies(
  questions: readonly string[],
  ask: (query: string) => Promise<unknown>,
): Promise<number[]> {
  const times: number[] = [];
  for (const query of questions) {
    const begin = performance.now();
    await ask(query);
    times.push(performance.now() - begin);
  }
  return times;
}

const spread = (times: readonly number[]): string =>
  [0.5, 0.99].map((share) => quantile(times, share).toFixed(1)).join(" / ");

await main();
