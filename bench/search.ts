/**
 * Speed of search: by words that are rare, mixed or common, in each tier; with nothing in memory, with questions never
 * asked before, with questions asked again, and while documents come into the same collection. Beside plain FTS5 with
 * `ORDER BY rank` and beside a walk through as many bytes of memory as the tier's codes have.
 * Run: `node bench/search.ts [CHUNKS …]`; 10,000 and 100,000 take some five minutes on two idle cores, 1,000,000 some
 * twenty and 8 GB of disk.
 */
import Database from "better-sqlite3";
import { mkdtempSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { freemem, tmpdir } from "node:os";
import { join } from "node:path";
import { search } from "../src/kb/search/search.ts";
import { openSqliteStore } from "../src/kb/store/sqlite/open.ts";
import type { Store } from "../src/kb/store/store.ts";
import { Tier } from "../src/wire/primitives.ts";
import {
  createAll,
  DIMENSIONS,
  embedder,
  fill,
  makeDocuments,
  makeQuestions,
  openAccount,
} from "./corpus.ts";
import type { Document, Kind } from "./corpus.ts";
import { median, printTable, quantile } from "./report.ts";

const KINDS: readonly Kind[] = ["rare", "mixed", "common"];
/** Different questions of a kind. */
const QUESTIONS = 100;
/** Times each is asked again. */
const ROUNDS = 3;
/** Questions put to plain FTS5, which takes a hundred times as long. */
const PLAIN_QUESTIONS = 12;
/** Documents made ready to come in meanwhile; whether they last or not, they end with the questions. */
const INCOMING = 4000;
/** What a run may cost: bytes on the disk for each chunk, memory for the program and what the tests hold. */
const DISK_BYTES_PER_CHUNK = 8000;
const MEMORY_BYTES_PER_CHUNK = 800;
const MEMORY_BYTES = 1e9;

async function main(): Promise<void> {
  const sizes = process.argv.slice(2).map(Number);
  const folder = mkdtempSync(join(tmpdir(), "kbsync-search-"));
  try {
    for (const chunks of sizes.length > 0 ? sizes : [10_000, 100_000]) {
      const problem = tooMuch(chunks, folder);
      if (problem === undefined) await run(chunks, join(folder, `${chunks}.sqlite`));
      else console.log(`\n${chunks} chunks are left out: ${problem}`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Why a size cannot be measured here. */
function tooMuch(chunks: number, folder: string): string | undefined {
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize < chunks * DISK_BYTES_PER_CHUNK) return `${folder} has no room for them`;
  return freemem() < MEMORY_BYTES + chunks * MEMORY_BYTES_PER_CHUNK
    ? "there is too little free memory"
    : undefined;
}

async function run(chunksWanted: number, path: string): Promise<void> {
  console.log(`\n${chunksWanted} chunks a tier; times in ms\n`);
  let store = await openSqliteStore({ path });
  const { accountId, scopeOf } = await openAccount(store);
  const plain = openPlain(`${path}-plain`);
  plain.fill(chunksWanted);
  const plainMs = new Map<Kind, number>();
  const rows: string[][] = [];
  const memory: string[][] = [];
  for (const tier of Tier.options) {
    const { chunks } = await fill(store, accountId, tier, chunksWanted);
    const incoming = take(makeDocuments(tier), INCOMING);
    for (const kind of KINDS) {
      const [first, ...others] = makeQuestions(kind, QUESTIONS);
      await store.close();
      store = await openSqliteStore({ path });
      const before = anonymousMb();
      const ask = (query: string): Promise<unknown> =>
        search(store.index, embedder, { scope: scopeOf(tier), tier, query, topK: 5, scoreMin: undefined });
      const cold = await latencies([first ?? ""], 1, ask);
      const fresh = await latencies(others, 1, ask);
      const again = await latencies(others, ROUNDS, ask);
      const used = anonymousMb() - before;
      const busy = await whileIngesting(store, accountId, tier, incoming, () =>
        latencies(others, ROUNDS, ask),
      );
      if (!plainMs.has(kind))
        plainMs.set(kind, median(await latencies(others.slice(0, PLAIN_QUESTIONS), 1, plain.ask)));
      const base = plainMs.get(kind) ?? Number.NaN;
      rows.push([
        `\`${tier}\`, ${kind} words`,
        ms(cold[0] ?? Number.NaN),
        `${ms(median(fresh))} / ${ms(quantile(fresh, 0.99))}`,
        spread(again),
        spread(busy.times),
        (quantile(busy.times, 0.99) / median(busy.times)).toFixed(1),
        busy.documentsPerSecond.toFixed(0),
        ms(base),
        (base / median(again)).toFixed(1),
      ]);
      if (kind === "common")
        memory.push([`\`${tier}\``, used.toFixed(0), ((used * 1e6) / chunks).toFixed(0)]);
    }
  }
  const head = ["search", "first after the start", "asked first, p50 / p99", "again, p50 / p90 / p99"];
  printTable(
    [
      ...head,
      "ingesting, p50 / p90 / p99",
      "p99 / p50",
      "documents/s meanwhile",
      "plain FTS5 p50",
      "it / again",
    ],
    rows,
  );
  console.log(
    `\nA walk through ${chunksWanted} codes of ${DIMENSIONS} bits takes ${ms(walk(chunksWanted))} ms.\n`,
  );
  printTable(["memory of searches", "MB on top", "MB a million chunks"], memory);
  plain.close();
  await store.close();
}

const ms = (value: number): string => value.toFixed(2);
const spread = (times: readonly number[]): string =>
  [0.5, 0.9, 0.99].map((share) => ms(quantile(times, share))).join(" / ");

/** Milliseconds of single searches, so many times through the questions. */
async function latencies(
  questions: readonly string[],
  rounds: number,
  ask: (query: string) => Promise<unknown>,
): Promise<number[]> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const query of questions) {
      const begin = performance.now();
      await ask(query);
      times.push(performance.now() - begin);
    }
  }
  return times;
}

async function whileIngesting(
  store: Store,
  accountId: string,
  tier: Tier,
  documents: readonly Document[],
  work: () => Promise<number[]>,
): Promise<{ times: number[]; documentsPerSecond: number }> {
  let isOver = false;
  const begin = performance.now();
  const ingest = createAll(store, accountId, tier, documents, () => !isOver);
  const times = await work();
  isOver = true;
  const count = await ingest;
  return { times, documentsPerSecond: (count * 1000) / (performance.now() - begin) };
}

function take<T>(source: Iterator<T>, count: number): T[] {
  return Array.from({ length: count }, () => source.next().value as T); // the source has no end
}

/** What the process has for itself: without the pages of files that the system may take back. */
function anonymousMb(): number {
  globalThis.gc?.();
  const kb = /RssAnon:\s+(\d+) kB/.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
  return Number(kb ?? Number.NaN) / 1024;
}

/** The least time in which the bytes of so many codes can be looked at: one comparison of memory. */
function walk(chunks: number): number {
  const [codes, same] = [
    Buffer.alloc((chunks * DIMENSIONS) / 8, 1),
    Buffer.alloc((chunks * DIMENSIONS) / 8, 1),
  ];
  const times = Array.from({ length: 9 }, () => {
    const begin = performance.now();
    codes.equals(same);
    // Both sides are read.
    return (performance.now() - begin) / 2;
  });
  return median(times);
}

interface Plain {
  fill(chunksWanted: number): void;
  ask(this: void, query: string): Promise<unknown>;
  close(): void;
}

/** The same chunks in an FTS5 table as its documentation has it. */
function openPlain(path: string): Plain {
  const db = new Database(path);
  db.exec(
    "CREATE VIRTUAL TABLE chunk USING fts5 (text, content = '', tokenize = 'porter unicode61 remove_diacritics 2')",
  );
  const insert = db.prepare("INSERT INTO chunk (text) VALUES (?)");
  const select = db.prepare("SELECT rowid FROM chunk WHERE chunk MATCH ? ORDER BY rank LIMIT 5");
  const load = (chunksWanted: number): void => {
    let chunks = 0;
    for (const { text, chunking } of makeDocuments("fastest")) {
      for (const { start, end } of chunking.spans) insert.run(text.slice(start, end));
      if ((chunks += chunking.spans.length) >= chunksWanted) return;
    }
  };
  return {
    fill: db.transaction(load),
    ask: async (query) => select.all((query.match(/\w+/g) ?? []).map((word) => `"${word}"`).join(" OR ")),
    close: () => {
      db.close();
    },
  };
}

await main();
