/**
 * What an afternoon's work gives, to compare the tiers with: plain FTS5, and its mean with the cosines of the packaged model.
 * Ranks whole documents, or chunks where the chunks of a set are ranked.
 */
import Database from "better-sqlite3";
import type { FoundSpan } from "./judged-sets.ts";

/** Units that each list contributes to the mean. */
const DEPTH = 100;

/** What a baseline ranks: a document, or a chunk. */
export interface Unit {
  readonly span: FoundSpan;
  readonly text: string;
  /** Vectors of its chunks: the nearest one counts. Empty without a model. */
  readonly vectors: readonly Float32Array[];
}

/** A unit's number and its score. */
type Scored = readonly [at: number, score: number];

/** Opens the baselines over the units. */
export function openBaselines(units: readonly Unit[]) {
  const db = new Database(":memory:");
  db.exec(
    "CREATE VIRTUAL TABLE unit USING fts5 (text, content = '', tokenize = 'porter unicode61 remove_diacritics 2')",
  );
  const insert = db.prepare("INSERT INTO unit (rowid, text) VALUES (?, ?)");
  db.transaction(() => {
    for (const [at, { text }] of units.entries()) insert.run(at + 1, text);
  })();
  const find = db.prepare<[string, number], { rowid: number; score: number }>(
    "SELECT rowid, -rank AS score FROM unit WHERE unit MATCH ? ORDER BY rank LIMIT ?",
  );
  const byWords = (query: string): Scored[] => {
    const words = query.match(/[\p{L}\p{N}]+/gu) ?? [];
    if (words.length === 0) return [];
    const match = words.map((word) => `"${word}"`).join(" OR ");
    return find.all(match, DEPTH).map(({ rowid, score }) => [rowid - 1, score]);
  };
  const spansOf = (scored: readonly Scored[]): FoundSpan[] => scored.flatMap(([at]) => units[at]?.span ?? []);
  return {
    /** Ranks by BM25. */
    words: (query: string): FoundSpan[] => spansOf(byWords(query)),
    /** Ranks by the mean of BM25 and cosine, each stretched to [0, 1]; a unit that a list lacks has 0 there. */
    fusion: (query: string, vector: Float32Array): FoundSpan[] => {
      const fused = new Map<number, number>();
      for (const list of [byWords(query), byCosine(units, vector)]) {
        for (const [at, share] of stretched(list)) fused.set(at, (fused.get(at) ?? 0) + share / 2);
      }
      return spansOf([...fused].toSorted((a, b) => b[1] - a[1] || a[0] - b[0]));
    },
    close: () => db.close(),
  };
}

function byCosine(units: readonly Unit[], vector: Float32Array): Scored[] {
  return units
    .map(({ vectors }, at): Scored => [at, Math.max(-1, ...vectors.map((each) => dot(each, vector)))])
    .toSorted((a, b) => b[1] - a[1] || a[0] - b[0])
    .slice(0, DEPTH);
}

function stretched(list: readonly Scored[]): Scored[] {
  const max = list[0]?.[1] ?? 0;
  const min = list.at(-1)?.[1] ?? 0;
  return list.map(([at, score]) => [at, max > min ? (score - min) / (max - min) : 1]);
}

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < a.length; at++) sum += (a[at] ?? 0) * (b[at] ?? 0);
  return sum;
}
