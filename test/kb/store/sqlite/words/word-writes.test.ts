import Database from "better-sqlite3";
import { beforeEach, expect, it } from "vitest";
import { rowOf } from "../../../../../src/kb/index/rows.ts";
import { DamagedIndex } from "../../../../../src/kb/index/seal.ts";
import { SCHEMA } from "../../../../../src/kb/store/sqlite/database/schema.ts";
import { prepareWordWrites, type WordWrites } from "../../../../../src/kb/store/sqlite/words/word-writes.ts";

let db: Database.Database;
let words: WordWrites;

beforeEach(() => {
  db = new Database(":memory:");
  for (const script of SCHEMA.scripts) db.exec(script);
  db.exec(`
    INSERT INTO account (id, name) VALUES ('a', 'a');
    INSERT INTO collection (id, account_id, tier) VALUES ('c', 'a', 'fastest');
    INSERT INTO scope (number, collection_id, owner_id) VALUES (1, 'c', 'ann');`);
  words = prepareWordWrites(db);
  mergeAll();
});

function mergeAll(): void {
  while (words.isDue()) db.transaction(() => words.step())();
}

/** Adds chunks of one word, each a write of its own. */
function addChunks(count: number): void {
  for (let at = 0; at < count; at++) words.add(rowOf(1, at), [`word${at}`]);
  db.prepare("UPDATE scope SET chunks = ?, next_sequence = ? WHERE number = 1").run(count, count);
}

const rowsOfRuns = (): unknown[] => db.prepare("SELECT rows FROM word_run ORDER BY first").pluck().all();
const countOf = (table: string): unknown => db.prepare(`SELECT count(*) FROM ${table}`).pluck().get();

it("merges many waiting segments in several merges, each of which fits into memory", () => {
  addChunks(3000);
  mergeAll();
  expect(rowsOfRuns()).toEqual([1024, 1024, 952]);
  expect(countOf("word_segment")).toBe(0);
});

it("plans the merges of every scope, however many are written to in turn", () => {
  for (let scope = 1; scope <= 10_001; scope++) words.add(rowOf(scope, 0), ["word"]);
  expect(words.isDue()).toBe(true);
});

it("leaves nothing of the chunks of a scope that has no more", () => {
  addChunks(10);
  for (let at = 0; at < 10; at++) {
    words.remove(rowOf(1, at), 1);
    db.prepare("UPDATE scope SET chunks = chunks - 1 WHERE number = 1").run();
  }
  mergeAll();
  expect(["word_segment", "word_run", "word_page", "word_removal"].map(countOf)).toEqual([0, 0, 0, 0]);
});

it("ends a purge while more chunks are removed all the time", () => {
  addChunks(400);
  mergeAll();
  words.remove(rowOf(1, 0), 1);
  const step = words.purge();
  let removed = 1;
  for (let isDue = true; isDue && removed < 300; removed++) {
    words.remove(rowOf(1, removed), 1);
    isDue = db.transaction(step)();
  }
  expect(removed).toBeLessThan(300);
  expect(db.prepare("SELECT count(*) FROM word_removal WHERE first = 0").pluck().get()).toBe(0);
});

it("does not try the merge of a damaged scope after each write", () => {
  addChunks(200);
  db.exec("UPDATE word_segment SET data = zeroblob(9) WHERE first_row % 2 = 0");
  expect(mergeAll).toThrow(DamagedIndex);
  words.abandon();
  expect(words.isDue()).toBe(false);
  words.add(rowOf(1, 200), ["word"]);
  expect(words.isDue()).toBe(false);
});
