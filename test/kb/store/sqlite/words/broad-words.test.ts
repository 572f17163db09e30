import { beforeEach, describe, expect, it } from "vitest";
import Database from "better-sqlite3";
import { rowOf } from "../../../../../src/kb/index/rows.ts";
import { prepareBroadWords } from "../../../../../src/kb/store/sqlite/words/broad-words.ts";
import type { SearchTarget } from "../../../../../src/kb/store/sqlite/scopes/scopes.ts";

const SCOPE = 3;
const CHUNKS = 10_000;
let db: Database.Database;
let reads: number;

/** Fills the scope: of a hundred chunks, about `share` hold a word of that name. */
function fill(count: number): void {
  const insert = db.prepare("INSERT INTO chunk VALUES (?, 1, 'Every', ?)");
  db.transaction(() => {
    for (let at = 0; at < count; at++) {
      const words = [50, 58, 68, 100]
        .filter((share) => (Math.imul(at + 1, 0x9e3779b1) >>> 8) % 100 < share)
        .map((share) => `word${share}`);
      insert.run(rowOf(SCOPE, at), words.join(" "));
    }
  })();
}

beforeEach(() => {
  reads = 0;
  db = new Database(":memory:");
  db.function("counted", () => {
    reads++;
    return "title";
  });
  // The columns that are read, of a view that counts how often.
  db.exec(`
    CREATE TABLE titles (number INTEGER PRIMARY KEY);
    INSERT INTO titles VALUES (1);
    CREATE VIEW resource AS SELECT number, counted() AS title, '' AS label FROM titles;
    CREATE TABLE chunk (row INTEGER PRIMARY KEY, resource INTEGER, headings TEXT, text TEXT)`);
  return () => db.close();
});

const placeOf = (chunks: number, rest: Partial<SearchTarget> = {}): SearchTarget => ({
  scope: SCOPE,
  chunks,
  words: chunks,
  nextSequence: chunks,
  retitled: 0,
  range: { first: rowOf(SCOPE, 0), last: rowOf(SCOPE + 1, 0) - 1 },
  rangeChunks: chunks,
  allowed: undefined,
  ...rest,
});

describe("the words of most chunks of a scope", () => {
  it("are those that surely stand in more than half, title and headings included", () => {
    fill(CHUNKS);
    const terms = prepareBroadWords(db)(placeOf(CHUNKS));
    expect([...terms].toSorted()).toEqual(["everi", "titl", "word100", "word68"]);
  });

  it("are none, and cost nothing, in a scope of fewer chunks than ten thousand", () => {
    fill(CHUNKS - 1);
    expect(prepareBroadWords(db)(placeOf(CHUNKS - 1)).size).toBe(0);
    expect(reads).toBe(0);
  });

  it.each<[string, Partial<SearchTarget>, boolean]>([
    ["nothing changed", {}, false],
    ["the scope grew by half", { chunks: 15_000, nextSequence: 15_000 }, false],
    ["the scope grew by more", { chunks: 15_001, nextSequence: 15_001 }, true],
    ["few of its chunks went", { chunks: 10_000, nextSequence: 12_000 }, false],
    ["more of its chunks went", { chunks: 10_000, nextSequence: 12_001 }, true],
    ["chunks that stay got other terms", { retitled: 1 }, true],
  ])(
    "are read from a sample of 400 chunks once, and again only when that is stale: %s",
    (_name, change, again) => {
      fill(CHUNKS);
      const broadWords = prepareBroadWords(db);
      const first = broadWords(placeOf(CHUNKS));
      expect(reads).toBe(400);
      const second = broadWords(placeOf(CHUNKS, change));
      expect(reads > 400).toBe(again);
      expect(second === first).toBe(!again);
    },
  );

  it("are none where most of the sample is gone", () => {
    fill(CHUNKS);
    const broadWords = prepareBroadWords(db);
    db.exec(`DELETE FROM chunk WHERE row >= ${rowOf(SCOPE, CHUNKS / 2 - 26)}`);
    expect(broadWords(placeOf(CHUNKS)).size).toBe(0);
    expect(reads).toBe(199);
  });

  it("are known of both halves where half of the sample is gone", () => {
    fill(CHUNKS);
    db.exec(`DELETE FROM chunk WHERE row >= ${rowOf(SCOPE, CHUNKS / 2)}`);
    expect(prepareBroadWords(db)(placeOf(CHUNKS)).has("word100")).toBe(true);
  });
});
