/**
 * Speed of ingest, stage by stage, each alone over the same texts: taking the text out of HTML, chunking, finding the
 * words, embedding, writing in each tier; beside a bare loop that writes the texts to a file and flushes as often. And
 * what the store takes on disk and in memory. Run: `node --expose-gc bench/ingest.ts [MB]` (default 20: a minute and a
 * half on two idle cores).
 */
import {
  closeSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openLocalEmbedder } from "../src/kb/embed/local.ts";
import { chunkRecursive } from "../src/kb/ingest/chunk/recursive.ts";
import { openExtractor } from "../src/kb/ingest/extract/extract.ts";
import { encodeSegment } from "../src/kb/index/words/segment.ts";
import { openSqliteStore } from "../src/kb/store/sqlite/open.ts";
import { DEFAULT_SETTINGS, Tier } from "../src/wire/primitives.ts";
import { createAll, IN_FLIGHT, makeDocuments, openAccount, type Document } from "./corpus.ts";
import { median, printTable } from "./report.ts";

/** Most that may be asked for: all of it stands in memory, some ten times over with its sentence vectors. */
const MB_MAX = 100;
/** Rounds of each stage that takes no file; the middle one counts. */
const ROUNDS = 3;
/** Pages and chunks for the stages that take seconds for a megabyte. */
const PAGES = 200;
const EMBEDDED = 64;

interface Row {
  readonly stage: string;
  readonly bytes: number;
  readonly ms: number;
  readonly note: string;
}

const mb = Math.min(MB_MAX, Number(process.argv[2] ?? 20));
const folder = mkdtempSync(join(tmpdir(), "kbsync-ingest-"));
try {
  const texts = documentsOf("fastest").map(({ text }) => text);
  const rows = [bareLoop(texts), await extracting(texts), ...cutting(texts), await embedding(texts)];
  const places: string[][] = [];
  for (const tier of Tier.options) {
    const { row, place } = await writing(tier);
    rows.push(row);
    places.push(place);
  }
  const bare = rows[0] === undefined ? Number.NaN : speed(rows[0]);
  printTable(
    ["stage", "MB/s", "of the bare loop", ""],
    rows.map((row) => [row.stage, speed(row).toFixed(2), (speed(row) / bare).toFixed(3), row.note]),
  );
  console.log();
  printTable(
    ["tier", "chunks", "disk, MB a million chunks", "memory after the load, MB", "the same before it"],
    places,
  );
} finally {
  rmSync(folder, { recursive: true });
}

function speed({ bytes, ms }: Row): number {
  return bytes / 1000 / ms;
}

function documentsOf(tier: Tier): Document[] {
  const documents: Document[] = [];
  let chars = 0;
  for (const document of makeDocuments(tier)) {
    documents.push(document);
    if ((chars += document.text.length) >= mb * 1e6) break;
  }
  return documents;
}

function bytesOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0);
}

function bareLoop(texts: readonly string[]): Row {
  const path = join(folder, "bare");
  const begin = performance.now();
  const file = openSync(path, "w");
  for (let at = 0; at < texts.length; at += IN_FLIGHT) {
    for (const text of texts.slice(at, at + IN_FLIGHT)) writeSync(file, text);
    fsyncSync(file);
  }
  closeSync(file);
  const ms = performance.now() - begin;
  const note = `a write each, a flush for each ${IN_FLIGHT}`;
  return { stage: "bare loop of writes and flushes", bytes: bytesOf(texts), ms, note };
}

async function extracting(texts: readonly string[]): Promise<Row> {
  const extractor = openExtractor();
  const pages = texts.slice(0, PAGES).map((text, at) => {
    const paragraphs = text.split("\n\n").map((part) => `<p>${part}</p>`);
    const page = `<!doctype html><html><body><main><h1>Page</h1>${paragraphs.join("")}</main></body></html>`;
    const path = join(folder, `${at}.html`);
    writeFileSync(path, page);
    return { path, bytes: page.length };
  });
  try {
    // A page of HTML is a kind of text, found by its bytes. The first one also starts what extracts.
    const [first] = pages;
    if (first !== undefined) await extractor.extractText({ path: first.path, mediaType: "text/plain" });
    const begin = performance.now();
    for (const { path } of pages) await extractor.extractText({ path, mediaType: "text/plain" });
    const ms = performance.now() - begin;
    const bytes = pages.reduce((sum, page) => sum + page.bytes, 0);
    return { stage: "extract, HTML", bytes, ms, note: `${PAGES} pages, one at a time` };
  } finally {
    extractor.close();
  }
}

function cutting(texts: readonly string[]): Row[] {
  const bytes = bytesOf(texts);
  const parts = texts.flatMap((text) =>
    chunkRecursive(text, DEFAULT_SETTINGS).map(({ start, end }) => text.slice(start, end)),
  );
  const timed = (work: () => void): number =>
    median(
      Array.from({ length: ROUNDS }, () => {
        const begin = performance.now();
        work();
        return performance.now() - begin;
      }),
    );
  const chunk = timed(() => texts.forEach((text) => chunkRecursive(text, DEFAULT_SETTINGS)));
  const words = timed(() => parts.forEach((part) => encodeSegment([part])));
  return [
    { stage: "chunk, `recursive`", bytes, ms: chunk, note: "one thread" },
    { stage: "words", bytes: bytesOf(parts), ms: words, note: "one thread; part of writing below" },
  ];
}

async function embedding(texts: readonly string[]): Promise<Row> {
  const stage = "embed, local model";
  const embedder = await openLocalEmbedder({});
  if (embedder.kind === "no-model") {
    return { stage, bytes: Number.NaN, ms: 1, note: `not measured: ${embedder.reason}` };
  }
  try {
    const parts = texts
      .flatMap((text) =>
        chunkRecursive(text, DEFAULT_SETTINGS).map(({ start, end }) => text.slice(start, end)),
      )
      .slice(0, EMBEDDED);
    await embedder.queries.embed(parts.slice(0, 4));
    const begin = performance.now();
    await embedder.embed(parts);
    const ms = performance.now() - begin;
    return { stage, bytes: bytesOf(parts), ms, note: `${((parts.length * 1000) / ms).toFixed(1)} chunks/s` };
  } finally {
    await embedder.close();
  }
}

async function writing(tier: Tier): Promise<{ row: Row; place: string[] }> {
  const documents = documentsOf(tier);
  const path = join(folder, `${tier}.sqlite`);
  const store = await openSqliteStore({ path });
  const { accountId } = await openAccount(store);
  const before = memoryMb();
  const begin = performance.now();
  await createAll(store, accountId, tier, documents, () => true);
  const ms = performance.now() - begin;
  const after = memoryMb();
  await store.close();
  const chunks = documents.reduce((sum, { chunking }) => sum + chunking.spans.length, 0);
  const note = `${((chunks * 1000) / ms).toFixed(0)} chunks/s, ${IN_FLIGHT} in flight`;
  const bytes = bytesOf(documents.map(({ text }) => text));
  const disk = statSync(path).size / chunks;
  return {
    row: { stage: `write, \`${tier}\``, bytes, ms, note },
    place: [`\`${tier}\``, String(chunks), disk.toFixed(0), after.toFixed(0), before.toFixed(0)],
  };
}

/** Resident memory of the whole process after collecting. */
function memoryMb(): number {
  globalThis.gc?.();
  return process.memoryUsage.rss() / 1e6;
}
