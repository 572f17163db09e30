/**
 * The chunkers: how whole the chunks of the documentation sample are, the recursive one's speed beside a plain pass over the lines and its growth on hard texts, how often a
 * passage that answers a question lies whole in one chunk, and how well chunks answer judged questions (Chroma's
 * method, local model). Run:
 *
 *     node bench/chunking.ts [--shape | --speed | --quality] [--sizes 900/0,1100/0] [--chunkers recursive,semantic]
 *
 * Vectors are kept in the temporary folder: making them takes minutes, for `semantic` an hour.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Embedder } from "../src/kb/embed/embedder.ts";
import { openLocalEmbedder } from "../src/kb/embed/local.ts";
import { chunkRecursive } from "../src/kb/ingest/chunk/recursive.ts";
import { chunkSemantic } from "../src/kb/ingest/chunk/semantic.ts";
import { chunkText } from "../src/kb/ingest/chunk/span.ts";
import type { Span } from "../src/kb/ingest/chunk/span.ts";
import { unitRanges } from "../src/kb/ingest/chunk/units.ts";
import { UNITS_MAX } from "../src/kb/ingest/split.ts";
import { measureShapes } from "./chunk-shape.ts";
import { readChunkingData } from "./chunking-data.ts";
import type { ChunkingData, Passage } from "./chunking-data.ts";
import { measureChunking } from "./chunking-quality.ts";
import type { CorpusSpan } from "./chunking-quality.ts";
import { median, printTable } from "./report.ts";
import { splitAtSeparators } from "./separators.ts";
import { writeTree } from "./tree.ts";
import { withVectorCache } from "./vector-cache.ts";

const { values: options } = parseArgs({
  options: {
    shape: { type: "boolean", default: false },
    speed: { type: "boolean", default: false },
    quality: { type: "boolean", default: false },
    /** Largest chunk and overlap in characters. */
    sizes: { type: "string", default: "1100/0,880/0,1100/550" },
    chunkers: { type: "string", default: "separators,recursive,semantic" },
  },
});

const shared = join(import.meta.dirname, "..", "..", "shared", "data");
const ROUNDS = 15;

function chunk(text: string, chunkSize: number, chunkOverlap: number): readonly Span[] {
  return chunkRecursive(text, { strategy: "recursive", chunkSize, chunkOverlap });
}

function printShapes(): void {
  const sample = join(shared, "docs-sample");
  if (!existsSync(sample)) {
    console.log("shapes of chunks: skipped, ../shared/data/docs-sample is not here");
    return;
  }
  const texts = markdownBelow(sample);
  const heads = ["begin in mid-sentence", "begin with another section's end", "with a fence alone"];
  printTable(
    ["docs-sample", "chunks", "mean length", ...heads],
    [
      [1000, 100],
      [1000, 200],
      [500, 50],
    ].map(([size = 0, overlap = 0]) => {
      const { chunks, meanChars, ...counts } = measureShapes(
        texts,
        (text) => chunk(text, size, overlap),
        chunkText,
      );
      const found = [counts.midSentence, counts.foreignTail, counts.unbalanced];
      const shares = found.map((count) => `${((count * 100) / chunks).toFixed(1)} % (${count})`);
      return [`${size}/${overlap}`, String(chunks), meanChars.toFixed(0)].concat(shares);
    }),
  );
}

function printSpeed(): void {
  const rows: [name: string, texts: string[]][] = [["generated", generatedTexts()]];
  const sample = join(shared, "docs-sample");
  if (existsSync(sample)) rows.push(["docs-sample", markdownBelow(sample)]);
  printTable(
    ["texts", "files", "MB", "1000/100 MB/s", "1000/0 MB/s", 'split("\\n") MB/s', "of split"],
    rows.map(([name, texts]) => {
      const chars = texts.reduce((sum, text) => sum + text.length, 0);
      const [overlapping, apart, split] = interleaved([
        () => texts.forEach((text) => chunk(text, 1000, 100)),
        () => texts.forEach((text) => chunk(text, 1000, 0)),
        () => texts.forEach((text) => text.split("\n")),
      ]);
      const speeds = [overlapping, apart, split].map((ms) => (chars / 1000 / (ms ?? Number.NaN)).toFixed(0));
      const share = ((split ?? Number.NaN) / (overlapping ?? Number.NaN)).toFixed(2);
      return [name, String(texts.length), (chars / 1e6).toFixed(1)].concat(speeds, share);
    }),
  );
}

/** Medians in ms of several works, run in turn so that a busy moment of the machine hits them alike. */
function interleaved(works: readonly (() => void)[]): number[] {
  const times = works.map((): number[] => []);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, work] of works.entries()) {
      const begin = performance.now();
      work();
      times[index]?.push(performance.now() - begin);
    }
  }
  return times.map(median);
}

function generatedTexts(): string[] {
  const root = mkdtempSync(join(tmpdir(), "kbsync-chunking-"));
  try {
    writeTree(root, { files: 1000, folders: 20, meanBytes: 4650 });
    return markdownBelow(root);
  } finally {
    rmSync(root, { recursive: true });
  }
}

function markdownBelow(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".md"))
    .toSorted()
    .map((file) => readFileSync(join(root, file), "utf8"));
}

/** Texts that a careless chunker takes quadratic time or a deep stack for. */
const HARD: readonly (readonly [name: string, unit: (index: number) => string])[] = [
  ["one word", () => "abcdefghij"],
  ["one line of words", () => "word and "],
  ["minified JSON", (index) => `{"id":${index},"v":[1,2]},`],
  ["lines of one letter", () => "a\n"],
  ["headings alone", (index) => `${"#".repeat((index % 6) + 1)} h${index}\n`],
  ["nested list", (index) => `${" ".repeat((index % 40) * 2)}- item ${index}\n`],
  ["one table", (index) => `| ${index} | cell |\n`],
  ["unclosed fences", (index) => `${"`".repeat(3 + (index % 50))}\n`],
  ["blank lines", (index) => (index % 5000 === 0 ? "x" : "\n")],
  ["stops", () => ". "],
  ["quotation", () => "> a\n"],
  ["Chinese", () => "这是一个没有空格的句子，"],
  ["emoji", () => "👩‍👩‍👧"],
];
const HARD_CHARS = 1_000_000;

function printGrowth(): void {
  printTable(
    ["hard text, 1 MB and 4 MB", "1000/100 ms", "4 × the text takes", "4000/3000 ms", "4 × the text takes"],
    HARD.map(([name, unit]) => {
      const long = repeated(unit, HARD_CHARS * 4);
      const short = long.slice(0, HARD_CHARS);
      return [name].concat(growth(short, long, 1000, 100), growth(short, long, 4000, 3000));
    }),
  );
}

function growth(short: string, long: string, size: number, overlap: number): string[] {
  const [once = 0, fourfold = 0] = interleaved([
    () => chunk(short, size, overlap),
    () => chunk(long, size, overlap),
  ]);
  return [once.toFixed(1), `${(fourfold / once).toFixed(1)} ×`];
}

function repeated(unit: (index: number) => string, chars: number): string {
  const parts: string[] = [];
  for (let length = 0, index = 0; length < chars; index++) {
    const part = unit(index);
    parts.push(part);
    length += part.length;
  }
  return parts.join("");
}

function printBoundaries({ corpora, questions }: ChunkingData): void {
  const passages = questions.flatMap((question) => question.passages);
  const rows: string[][] = [];
  for (const [size, overlap] of [
    [1000, 100],
    [1000, 0],
    [1000, 200],
    [500, 0],
    [2000, 0],
  ] as const) {
    for (const [name, chunker] of [
      ["recursive", chunk],
      ["fixed", fixed],
    ] as const) {
      const spans = new Map([...corpora].map(([corpus, text]) => [corpus, chunker(text, size, overlap)]));
      rows.push([`${size}/${overlap}`, name, ...boundaryFigures(passages, spans)]);
    }
  }
  printTable(["size/overlap", "chunker", "chunks", "mean length", "passages whole", "cut"], rows);
}

function boundaryFigures(
  passages: readonly Passage[],
  spans: ReadonlyMap<string, readonly Span[]>,
): string[] {
  const all = [...spans.values()].flat();
  const length = all.reduce((sum, { start, end }) => sum + end - start, 0);
  const whole = passages.filter(({ corpus, begin, end }) =>
    spans.get(corpus)?.some((span) => span.start <= begin && end <= span.end),
  ).length;
  return [
    String(all.length),
    (length / all.length).toFixed(0),
    `${((100 * whole) / passages.length).toFixed(1)} %`,
    String(passages.length - whole),
  ];
}

/** The naive peer: every `size` characters. */
function fixed(text: string, size: number, overlap: number): readonly Span[] {
  const spans: Span[] = [];
  for (let start = 0; start + overlap < text.length; start += size - overlap) {
    spans.push({ start, end: Math.min(start + size, text.length), headings: [] });
  }
  return spans;
}

/**
 * Sizes in characters: 250 and 200 tokens of the tokenizer that the published rows count with are 1100 and 880
 * characters of these texts (4.40 a token).
 */
const JUDGED_SIZES = options.sizes.split(",").map((pair) => {
  const [size = 0, overlap = 0] = pair.split("/").map(Number);
  return { size, overlap };
});

/** Published by Chroma for all-MiniLM-L6-v2, five chunks retrieved. */
const PUBLISHED: readonly (readonly string[])[] = [
  ["published: recursive 250/0 tokens", "", "", "78.5", "5.4", "5.4"],
  ["published: recursive 200/0 tokens", "", "", "75.7", "6.5", "6.5"],
  ["published: recursive 250/125 tokens", "", "", "78.7", "4.9", "4.9"],
  ["published: fixed 250/125 tokens", "", "", "82.4", "3.6", "3.5"],
  ["published: cluster 250 tokens", "", "", "77.3", "6.1", "6.0"],
  ["published: cluster 200 tokens", "", "", "75.2", "7.2", "7.2"],
];

async function printQuality(data: ChunkingData): Promise<void> {
  const found = await openLocalEmbedder({});
  if (!("embed" in found)) {
    console.log(`judged questions: skipped, ${found.reason}`);
    return;
  }
  const embedder = withVectorCache(found);
  try {
    const rows: string[][] = [];
    for (const { size, overlap } of JUDGED_SIZES) {
      const chunkers: [name: string, split: (text: string) => Promise<readonly Span[]>][] = [
        ["recursive", async (text) => chunk(text, size, overlap)],
        ["semantic", (text) => chunkByMeaning(text, size, overlap, embedder)],
      ];
      if (overlap === 0) chunkers.unshift(["separators", async (text) => splitAtSeparators(text, size)]);
      for (const [name, split] of chunkers) {
        if (!options.chunkers.split(",").includes(name)) continue;
        const spans: CorpusSpan[] = [];
        for (const [corpus, text] of data.corpora) {
          for (const { start, end, headings } of await split(text))
            spans.push({ start, end, headings, corpus });
        }
        const textOf = ({ corpus, start, end }: CorpusSpan): string =>
          data.corpora.get(corpus)?.slice(start, end) ?? "";
        const { recall, precision, iou } = await measureChunking(data, spans, textOf, embedder);
        const length = spans.reduce((sum, { start, end }) => sum + end - start, 0) / spans.length;
        const shares = [recall, precision, iou].map((share) => (100 * share).toFixed(1));
        rows.push([`${name} ${size}/${overlap}`, String(spans.length), length.toFixed(0), ...shares]);
      }
    }
    printTable(["", "chunks", "mean length", "recall", "precision", "IoU"], [...rows, ...PUBLISHED]);
  } finally {
    await embedder.close();
  }
}

async function chunkByMeaning(
  text: string,
  chunkSize: number,
  chunkOverlap: number,
  embedder: Embedder,
): Promise<readonly Span[]> {
  const asked = { strategy: "semantic", chunkSize, chunkOverlap } as const;
  const units = unitRanges(text, asked, UNITS_MAX) ?? [];
  const vectors = await embedder.embed(units.map(({ start, end }) => text.slice(start, end)));
  const all = new Float32Array(units.length * embedder.dimensions);
  for (const [at, vector] of vectors.entries()) all.set(vector, at * embedder.dimensions);
  return chunkSemantic(text, asked, UNITS_MAX, { vectors: all, dimensions: embedder.dimensions });
}

const isOne = options.shape || options.speed || options.quality;
if (options.shape || !isOne) {
  printShapes();
  console.log();
}
if (options.speed || !isOne) {
  printSpeed();
  console.log();
  printGrowth();
  console.log();
}
const data = options.quality || !isOne ? readChunkingData() : undefined;
if (data !== undefined) {
  printBoundaries(data);
  console.log();
  await printQuality(data);
}
