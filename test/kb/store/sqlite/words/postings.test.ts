import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { rowOf } from "../../../../../src/kb/index/rows.ts";
import { preparePostings } from "../../../../../src/kb/store/sqlite/words/postings.ts";

const SCOPE = 3;
const BYTES_MAX = 40_000;

it("keeps the lists of recent words in memory, and evicts the oldest when even empty lists would take too much", () => {
  const db = new Database(":memory:");
  try {
    db.exec(`
      CREATE TABLE resource (number INTEGER PRIMARY KEY, title TEXT);
      CREATE TABLE chunk (row INTEGER PRIMARY KEY, resource INTEGER, headings TEXT, text TEXT, words INTEGER);
      CREATE VIRTUAL TABLE chunk_index USING fts5(text, content='')`);
    const postings = preparePostings(db, BYTES_MAX);
    const target = {
      scope: SCOPE,
      chunks: 10,
      words: 10,
      nextSequence: 10,
      retitled: 0,
      range: { first: rowOf(SCOPE, 0), last: rowOf(SCOPE + 1, 0) - 1 },
      rangeChunks: 10,
      allowed: undefined,
    };
    const lengthOf = (term: string): number | undefined => postings.of(target, term)?.length;
    expect(lengthOf("heron")).toBe(0);
    // No write adds a word to an old chunk, so only a list that is read again from the index has it.
    db.prepare("INSERT INTO chunk_index (rowid, text) VALUES (?, 'heron')").run(rowOf(SCOPE, 5));
    for (let at = 0; at < 50; at++) lengthOf(`w${at}`);
    expect(lengthOf("heron")).toBe(0);
    for (let at = 0; at < 150; at++) lengthOf(`w${at}`);
    expect(lengthOf("heron")).toBe(1);
  } finally {
    db.close();
  }
});
