/**
 * Speed of the store: search by words (rare, mixed and common ones), by words and vectors, while idle and while the
 * store takes in documents, beside plain FTS5 with `ORDER BY rank`; and ingest beside a bare loop that writes the same
 * bytes and flushes as often. Run: `node bench/search.ts [FILES …]`; 20,000 files are some 100,000 chunks.
 */
import Database from "better-sqlite3";
import {
  closeSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Embedder } from "../src/kb/embed/embedder.ts";
import { chunkRecursive } from "../src/kb/ingest/chunk/recursive.ts";
import type { Span } from "../src/kb/ingest/chunk/span.ts";
import { search } from "../src/kb/search/search.ts";
import { openSqliteStore } from "../src/kb/store/sqlite/open.ts";
import type { Scope, Store } from "../src/kb/store/store.ts";
import { DEFAULT_SETTINGS, type Tier } from "../src/wire/primitives.ts";
import { median, printTable, quantile } from "./report.ts";
import { LARGE_TREE, writeTree } from "./tree.ts";

/** Creates under way at once, as the daemon sends them. */
const IN_FLIGHT = 16;
const ROUNDS = 25;
const DIMENSIONS = 384;
const CLUSTERS = 1000;

interface Document {
  readonly text: string;
  readonly spans: readonly Span[];
}

/** Questions by the kind of their words. */
type Questions = Readonly<Record<"rare" | "mixed" | "common", readonly string[]>>;

async function main(): Promise<void> {
  const sizes = process.argv.slice(2).map(Number);
  const folder = mkdtempSync(join(tmpdir(), "kbsync-search-"));
  try {
    for (const files of sizes.length > 0 ? sizes : [LARGE_TREE.files / 10, LARGE_TREE.files]) {
      await run(generate(join(folder, `tree-${files}`), files), folder);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function run(documents: readonly Document[], folder: string): Promise<void> {
  const chars = documents.reduce((sum, { text }) => sum + text.length, 0);
  const chunks = documents.reduce((sum, { spans }) => sum + spans.length, 0);
  console.log(`\n${documents.length} documents, ${(chars / 1e6).toFixed(0)} MB, ${chunks} chunks\n`);
  const questions = chooseQuestions(documents);
  const store = await openSqliteStore({ path: join(folder, `store-${documents.length}.sqlite`) });
  const { id: accountId } = await store.ensureAccount("bench");
  const scopes = new Map<Tier, Scope>();
  for (const { id: collectionId, tier } of await store.collections(accountId)) {
    scopes.set(tier, { accountId, collectionId, ownerId: "bench" });
  }
  const scopeOf = (tier: Tier): Scope => scopes.get(tier) ?? { accountId, resourceId: "" };
  const create = creator(store, accountId);

  const ingestMs = await timed(() => create(documents, "fastest"));
  const bareMs = bareLoop(documents, join(folder, "bare"));
  const perSecond = (amount: number, ms: number): string => ((amount / ms) * 1000).toFixed(0);
  printTable(
    ["ingest", "seconds", "chunks/s", "MB/s", "of the bare loop"],
    [
      [
        "store, `fastest`",
        (ingestMs / 1000).toFixed(2),
        perSecond(chunks, ingestMs),
        perSecond(chars / 1e6, ingestMs),
        (bareMs / ingestMs).toFixed(2),
      ],
      [
        "bare loop of writes and flushes",
        (bareMs / 1000).toFixed(2),
        "",
        perSecond(chars / 1e6, bareMs),
        "1",
      ],
    ],
  );
  console.log();

  const plain = plainFts5(documents, join(folder, "plain.sqlite"));
  await create(documents, "moderate", randomVectors);
  const rows: string[][] = [];
  const more = documents.slice(0, 2000);
  for (const tier of ["fastest", "moderate"] as const) {
    for (const [kind, list] of Object.entries(questions)) {
      const ask = (query: string): Promise<unknown> =>
        search(store, embedder, { scope: scopeOf(tier), tier, query, topK: 5, scoreMin: undefined });
      const idle = await latencies(list, ask, () => false);
      let isBusy = true;
      const ingest = create(more, "fastest").then(() => (isBusy = false));
      const busy = await latencies(list, ask, () => isBusy);
      await ingest;
      const base =
        tier === "fastest"
          ? await latencies(
              list,
              (query) => plain.search(query),
              () => false,
            )
          : undefined;
      rows.push([
        `\`${tier}\`, ${kind} words`,
        ...[idle, busy].flatMap((times) => [median(times).toFixed(2), quantile(times, 0.99).toFixed(2)]),
        base === undefined ? "" : median(base).toFixed(2),
        base === undefined ? "" : (median(base) / median(idle)).toFixed(1),
      ]);
    }
  }
  printTable(
    ["search, ms", "idle p50", "p99", "ingesting p50", "p99", "plain FTS5 p50", "times faster"],
    rows,
  );
  plain.close();
  await store.close();
}

/** Milliseconds of single searches: ROUNDS times through the questions, or longer while `goOn` says so. */
async function latencies(
  questions: readonly string[],
  ask: (query: string) => Promise<unknown>,
  goOn: () => boolean,
): Promise<number[]> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS || goOn(); round++) {
    for (const query of questions) times.push(await timed(() => ask(query)));
  }
  return times;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
}

type MakeVectors = (count: number) => Float32Array[];
type Create = (documents: readonly Document[], tier: Tier, vectors?: MakeVectors) => Promise<void>;

function creator(store: Store, accountId: string): Create {
  let made = 0;
  return async (documents, tier, vectors) => {
    const waiting = documents.values();
    const lane = async (): Promise<void> => {
      for (const { text, spans } of waiting) {
        await store.createResource(
          {
            accountId,
            id: (++made).toString(16).padStart(24, "0"),
            tier,
            ownerId: "bench",
            origin: "content",
            title: text.slice(2, text.indexOf("\n")),
            description: "",
            url: null,
            content: text,
            settings: DEFAULT_SETTINGS,
            createdAt: "2026-01-01T00:00:00.000Z",
          },
          { spans, vectors: vectors?.(spans.length), fingerprint: vectors && embedder.fingerprint },
        );
      }
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
  };
}

function bareLoop(documents: readonly Document[], path: string): number {
  const begin = performance.now();
  const file = openSync(path, "w");
  for (let at = 0; at < documents.length; at += IN_FLIGHT) {
    for (const { text } of documents.slice(at, at + IN_FLIGHT)) writeSync(file, text);
    fsyncSync(file);
  }
  closeSync(file);
  rmSync(path);
  return performance.now() - begin;
}

function plainFts5(
  documents: readonly Document[],
  path: string,
): { search(query: string): Promise<unknown>; close(): void } {
  const db = new Database(path);
  db.exec(
    "CREATE VIRTUAL TABLE chunk USING fts5 (text, content = '', tokenize = 'porter unicode61 remove_diacritics 2')",
  );
  const insert = db.prepare("INSERT INTO chunk (text) VALUES (?)");
  db.transaction(() => {
    for (const { text, spans } of documents)
      for (const { start, end } of spans) insert.run(text.slice(start, end));
  })();
  const select = db.prepare("SELECT rowid FROM chunk WHERE chunk MATCH ? ORDER BY rank LIMIT 5");
  return {
    search: async (query) => select.all((query.match(/\w+/g) ?? []).map((word) => `"${word}"`).join(" OR ")),
    close: () => {
      db.close();
      rmSync(path);
    },
  };
}

/** Questions of words as rare or common as asked for, by how many documents hold them; the same each time. */
function chooseQuestions(documents: readonly Document[]): Questions {
  const holding = new Map<string, number>();
  for (const { text } of documents) {
    for (const word of new Set(text.toLowerCase().match(/[a-z]{2,}/g)))
      holding.set(word, (holding.get(word) ?? 0) + 1);
  }
  const sorted = [...holding].toSorted(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).map(([word]) => word);
  const pick = (from: number, step: number): string => sorted[Math.min(sorted.length - 1, from + step)] ?? "";
  const twelve = Array.from({ length: 12 }, (_, at) => at);
  return {
    rare: twelve.map((at) => `${pick(8000, at * 211)} ${pick(9000, at * 307)} ${pick(6000, at * 101)}`),
    mixed: twelve.map(
      (at) => `how is the ${pick(300, at * 17)} of a ${pick(5000, at * 97)} used in the ${pick(60, at * 9)}`,
    ),
    common: twelve.map((at) =>
      twelve
        .slice(0, 9)
        .map((word) => pick(0, (word * 5 + at * 7) % 48))
        .join(" "),
    ),
  };
}

const centres = Array.from({ length: CLUSTERS }, () => Float32Array.from({ length: DIMENSIONS }, gauss));

function randomVectors(count: number): Float32Array[] {
  return Array.from({ length: count }, () => {
    const centre = centres[Math.floor(Math.random() * CLUSTERS)] ?? new Float32Array(DIMENSIONS);
    const vector = centre.map((value) => value + 0.7 * gauss());
    const length = Math.hypot(...vector);
    return vector.map((value) => value / length);
  });
}

/** Answers at once: what a model costs is measured by bench/embed.ts. */
const embedder: Embedder = {
  fingerprint: "random",
  dimensions: DIMENSIONS,
  tokensMax: 256,
  embed: async (texts) => randomVectors(texts.length),
  close: async () => undefined,
};

function gauss(): number {
  return Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
}

function generate(root: string, files: number): Document[] {
  writeTree(root, { ...LARGE_TREE, files });
  const documents = readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => readFileSync(join(root, name), "utf8"))
    .map((text) => ({ text, spans: chunkRecursive(text, DEFAULT_SETTINGS) }));
  rmSync(root, { recursive: true });
  return documents;
}

await main();
