/**
 * The recursive chunker: its speed beside a plain pass over the lines, its growth on hard texts, and how often a
 * passage that answers a question lies whole in one chunk. Run: `node bench/chunking.ts`.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chunkRecursive } from "../src/kb/ingest/chunk/recursive.ts";
import type { Span } from "../src/kb/ingest/chunk/span.ts";
import { median, printTable } from "./report.ts";
import { writeTree } from "./tree.ts";

const shared = join(import.meta.dirname, "..", "..", "shared", "data");
const ROUNDS = 15;

function chunk(text: string, chunkSize: number, chunkOverlap: number): readonly Span[] {
  return chunkRecursive(text, { strategy: "recursive", chunkSize, chunkOverlap });
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

interface Passage {
  readonly corpus: string;
  readonly begin: number;
  readonly end: number;
}

function printBoundaries(): void {
  const root = join(shared, "chunking-eval");
  if (!existsSync(root)) {
    console.log("boundaries: skipped, ../shared/data/chunking-eval is not here");
    return;
  }
  const corpora = new Map(
    readdirSync(join(root, "corpora")).map((file) => [
      file.replace(/\.md$/, ""),
      readFileSync(join(root, "corpora", file), "utf8"),
    ]),
  );
  const passages = passagesOf(readFileSync(join(root, "questions_df.csv"), "utf8"), corpora);
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

/** Reads the questions' reference passages; the file counts offsets in code points. */
function passagesOf(csv: string, corpora: ReadonlyMap<string, string>): Passage[] {
  const offsets = new Map([...corpora].map(([corpus, text]) => [corpus, codePointOffsets(text)]));
  const passages: Passage[] = [];
  for (const [, references = "[]", corpus = ""] of csvRows(csv).slice(1)) {
    // The format is fixed by the data set's checksum.
    const listed = JSON.parse(references) as { content: string; start_index: number; end_index: number }[];
    for (const { content, start_index: first, end_index: last } of listed) {
      const begin = offsets.get(corpus)?.[first] ?? Number.NaN;
      const end = offsets.get(corpus)?.[last] ?? Number.NaN;
      if (corpora.get(corpus)?.slice(begin, end) !== content)
        throw new Error(`passage not in ${corpus}: ${content}`);
      passages.push({ corpus, begin, end });
    }
  }
  return passages;
}

function codePointOffsets(text: string): number[] {
  const offsets = [0];
  let offset = 0;
  for (const character of text) offsets.push((offset += character.length));
  return offsets;
}

function csvRows(csv: string): string[][] {
  const rows: string[][] = [[]];
  for (const [, quoted, plain, ending] of csv.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/g)) {
    rows.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain ?? "");
    if (ending !== ",") rows.push([]);
  }
  return rows.filter((row) => row.length > 1);
}

printSpeed();
console.log();
printGrowth();
console.log();
printBoundaries();
