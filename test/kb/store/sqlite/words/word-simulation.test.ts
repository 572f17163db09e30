import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { rowOf, rowsOfScope } from "../../../../../src/kb/index/rows.ts";
import { termsOf } from "../../../../../src/kb/index/words/part.ts";
import { eachPosting } from "../../../../../src/kb/index/words/postings.ts";
import { hashOf } from "../../../../../src/kb/index/words/term-hash.ts";
import { searchWords, type WordHits } from "../../../../../src/kb/index/words/word-search.ts";
import { analyze } from "../../../../../src/kb/lexical/analyzer.ts";
import { queryWords } from "../../../../../src/kb/lexical/word-match.ts";
import {
  type Connection,
  openForReading,
  openForWriting,
} from "../../../../../src/kb/store/sqlite/database/connection.ts";
import type { SearchTarget } from "../../../../../src/kb/store/search/search-target.ts";
import { prepareWordParts } from "../../../../../src/kb/store/sqlite/words/word-parts.ts";
import { prepareWordReads } from "../../../../../src/kb/store/sqlite/words/word-reads.ts";
import { prepareWordWrites } from "../../../../../src/kb/store/sqlite/words/word-writes.ts";
import { openChance, type Chance } from "../../../../crash/chance.ts";
import { expectedHits, wordsOf } from "../../../index/words/brute-force.ts";
import { randomRuns } from "../../../../random-runs.ts";

const STEPS = Number(process.env["KBSYNC_TEST_WORD_STEPS"] ?? randomRuns(1500));
const SEEDS = Number(process.env["KBSYNC_TEST_WORD_SEEDS"] ?? 3);
/** Scopes by number, with the most chunks that their documents have. */
const SCOPES = [
  { number: 1, chunksMax: 1 },
  { number: 2, chunksMax: 3 },
  { number: 3, chunksMax: 200 },
] as const;
const WORDS = 1500;

const folder = mkdtempSync(join(tmpdir(), "kbsync-words-"));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** What a scope must be: the texts of its chunks by sequence, and the rows of its documents. */
interface Model {
  texts: (string | undefined)[];
  chunks: number;
  words: number;
  docs: { readonly first: number; readonly chunks: number }[];
}

const emptyModel = (): Model => ({ texts: [], chunks: 0, words: 0, docs: [] });

type Models = Map<number, Model>;

/** A search, and what it must find. */
interface Expectation {
  readonly query: string;
  readonly limit: number;
  readonly hits: ReturnType<typeof expectedHits>["hits"];
}

it.each(Array.from({ length: SEEDS }, (_, at) => at + 1))(
  "an index equals one made afresh after any writes, removals, merges, crashes and failures, in the simulation %i",
  (seed) => {
    const world = openWorld(openChance(seed), join(folder, `${seed}.sqlite`));
    for (let step = 0; step < STEPS; step++) world.step();
    world.end();
    expect(world.searches()).toBeGreaterThan(0);
  },
  60_000 + STEPS * 20,
);

/** Opens an index that is written and read at random, beside models of what it must hold. */
function openWorld(chance: Chance, path: string) {
  const db = openForWriting(path);
  db.pragma("synchronous = OFF");
  db.exec(`
    INSERT INTO account (id, name) VALUES ('a', 'a');
    INSERT INTO collection (id, account_id, tier) VALUES ('c', 'a', 'fastest');`);
  for (const { number } of SCOPES)
    db.prepare("INSERT INTO scope (number, collection_id, owner_id) VALUES (?, 'c', ?)").run(
      number,
      `${number}`,
    );
  // A step ends after two calls, so that merges take many, and each run is the same.
  let time = 0;
  const start = () => prepareWordWrites(db, () => (time += 3));
  let words = start();
  let models: Models = new Map(SCOPES.map(({ number }) => [number, emptyModel()]));
  const readers = [openWordReader(path), openWordReader(path)] as const;
  /** A search of an old snapshot that has not ended yet. */
  let old: (() => void) | undefined;

  /** Runs in a transaction that is committed, or fails, which the index is notified of unless the process ended with it. */
  function attempt(run: () => void): void {
    const fate = chance.next();
    const before = fate < 0.94 ? models : structuredClone(models);
    db.exec("BEGIN IMMEDIATE");
    run();
    if (fate < 0.94) return void db.exec("COMMIT");
    db.exec("ROLLBACK");
    models = before;
    if (fate < 0.97) words.abandon();
    else words = start();
  }

  function write(): void {
    const { number, chunksMax } = chance.pick(SCOPES);
    const model = models.get(number) ?? emptyModel();
    const drawn = chance.next();
    const doc = model.docs.length === 0 ? undefined : chance.pick(model.docs);
    const emptied = drawn < 0.0003 ? model.docs : [];
    if (drawn > 0.75 && doc !== undefined) {
      // An update, a new title or a removal.
      if (drawn < 0.85)
        add(
          db,
          words,
          number,
          model,
          makeTexts(chance, drawn < 0.83 ? doc.chunks : 1 + chance.below(chunksMax)),
        );
      remove(db, words, number, model, doc);
    } else {
      for (const each of emptied) remove(db, words, number, model, each);
      add(
        db,
        words,
        number,
        model,
        makeTexts(chance, chance.happens(0.03) ? 1 + chance.below(chunksMax) : 1),
      );
    }
  }

  function writes(): void {
    for (let left = 1 + chance.below(8); left > 0; left--) write();
  }

  let searches = 0;
  function expectation(number: number): Expectation {
    searches++;
    const { texts } = models.get(number) ?? emptyModel();
    const query = makeText(chance, 1 + chance.below(4));
    return { query, limit: chance.pick([1, 10, 1000]), hits: expectedHits(texts, query).hits };
  }

  function purge(): void {
    const removed = structuredClone(models);
    const step = words.purge();
    while (db.transaction(step)()) {
      if (chance.happens(0.2)) db.transaction(write)();
    }
    const stored = prepareWordParts(db);
    for (const [number, { texts }] of removed) {
      for (const { part } of [...stored.runs(number), ...stored.segments(number, 0)]) {
        for (let at = 0; at < part.rows; at++) {
          const sequence = part.sequence(at);
          if (sequence < texts.length)
            expect([number, sequence, texts[sequence]]).not.toEqual([number, sequence, undefined]);
        }
      }
    }
  }

  return {
    searches: () => searches,
    step() {
      const drawn = chance.next();
      const { number } = chance.pick(SCOPES);
      if (drawn < 0.35) attempt(writes);
      else if (drawn < 0.9) {
        attempt(() => {
          if (words.isDue()) words.step();
          if (chance.happens(0.3)) write();
        });
      } else if (drawn < 0.98) readers[0].search(number, expectation(number));
      else if (drawn < 0.9995) {
        old?.();
        old = old === undefined ? readers[1].later(number, expectation(number)) : undefined;
      } else purge();
    },
    end() {
      old?.();
      while (words.isDue()) db.transaction(() => words.step())();
      words.abandon();
      purge();
      for (const [number, { texts }] of models) {
        expect(postingsOf(db, number)).toEqual(postingsOfTexts(texts));
        for (let at = 0; at < 20; at++) readers[0].search(number, expectation(number));
      }
      const runs = db.prepare("SELECT count(*) FROM word_run GROUP BY scope").pluck().all() as number[];
      for (const count of runs) expect(count).toBeLessThan(16);
      const orphans =
        "SELECT count(*) FROM word_page WHERE number >> 24 NOT IN (SELECT number FROM word_run)";
      expect(db.prepare(orphans).pluck().get()).toBe(0);
      for (const reader of readers) reader.close();
      db.close();
    },
  };
}

function add(
  db: Connection,
  words: ReturnType<typeof prepareWordWrites>,
  scope: number,
  model: Model,
  texts: string[],
): void {
  const first = model.texts.length;
  words.add(rowOf(scope, first), texts);
  model.texts.push(...texts);
  model.docs.push({ first, chunks: texts.length });
  addToCounts(db, scope, model, 1, texts);
}

function remove(
  db: Connection,
  words: ReturnType<typeof prepareWordWrites>,
  scope: number,
  model: Model,
  doc: Model["docs"][number],
): void {
  words.remove(rowOf(scope, doc.first), doc.chunks);
  const last = doc.first + doc.chunks;
  addToCounts(db, scope, model, -1, model.texts.slice(doc.first, last));
  model.texts.fill(undefined, doc.first, last);
  model.docs = model.docs.filter((each) => each !== doc);
}

/** Changes what the scope counts. */
function addToCounts(db: Connection, scope: number, model: Model, sign: 1 | -1, texts: Model["texts"]): void {
  model.chunks += sign * texts.length;
  model.words += sign * wordsOf(texts);
  const update = "UPDATE scope SET next_sequence = ?, chunks = ?, words = ? WHERE number = ?";
  db.prepare(update).run(model.texts.length, model.chunks, model.words, scope);
}

function openWordReader(path: string) {
  const db = openForReading(path);
  const snapshotOf = prepareWordReads(db);
  const select = db.prepare<[number], Omit<SearchTarget, "range" | "rangeChunks" | "allowed">>(
    "SELECT number AS scope, chunks, words, next_sequence AS nextSequence, merged FROM scope WHERE number = ?",
  );
  const begin = (scope: number): SearchTarget => {
    db.exec("BEGIN");
    const row = select.get(scope);
    if (row === undefined) throw new Error(`no scope ${scope}`);
    return { ...row, range: rowsOfScope(scope), rangeChunks: row.chunks, allowed: undefined };
  };
  const end = (target: SearchTarget, { query, limit, hits }: Expectation): void => {
    const all = { words: queryWords(query), limit, first: 0, last: target.nextSequence, allowed: undefined };
    expectHits(searchWords(snapshotOf(target), all), hits, limit);
    db.exec("COMMIT");
  };
  return {
    search: (scope: number, expected: Expectation) => {
      end(begin(scope), expected);
    },
    /** Takes a snapshot now, and returns the search of it. */
    later: (scope: number, expected: Expectation) => {
      const target = begin(scope);
      return () => {
        end(target, expected);
      };
    },
    close: () => {
      db.close();
    },
  };
}

function expectHits({ hits }: WordHits, expected: Expectation["hits"], limit: number): void {
  expect(hits).toHaveLength(Math.min(limit, expected.length));
  const scoreOf = new Map(expected.map(({ sequence, bm25 }) => [sequence, bm25]));
  for (const [at, { sequence, bm25 }] of hits.entries()) {
    expect(bm25).toBeCloseTo(expected[at]?.bm25 ?? 0, 9);
    expect(bm25).toBeCloseTo(scoreOf.get(sequence) ?? 0, 9);
  }
}

/** All postings of a scope's live chunks as lines, in order. */
function postingsOf(db: Connection, scope: number): string[] {
  const lines: string[] = [];
  for (const { part, removed } of prepareWordParts(db).marked(scope)) {
    for (const [hash, { bytes }] of termsOf(part)) {
      eachPosting(bytes, (ordinal, times) => {
        if (!removed.has(ordinal)) lines.push(`${part.sequence(ordinal)} ${hash} ${times}`);
      });
    }
  }
  return lines.sort();
}

function postingsOfTexts(texts: Model["texts"]): string[] {
  return texts
    .flatMap((text, sequence) => {
      const { terms, counts } = analyze(text ?? "");
      return terms.map((term, at) => `${sequence} ${hashOf(term)} ${counts[at]}`);
    })
    .sort();
}

function makeTexts(chance: Chance, chunks: number): string[] {
  return Array.from({ length: chunks }, () => makeText(chance, chance.below(12)));
}

/** Words of which a few are in most texts, and most in few. */
function makeText(chance: Chance, length: number): string {
  return Array.from({ length }, () => `w${Math.floor(WORDS ** chance.next())}x`).join(" ");
}
