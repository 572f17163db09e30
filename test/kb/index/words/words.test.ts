import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { makeRowSet } from "../../../../src/kb/index/row-set.ts";
import { mergeParts } from "../../../../src/kb/index/words/merge.ts";
import { makeRemoved } from "../../../../src/kb/index/words/removed.ts";
import { termsOf, type WalkedPart } from "../../../../src/kb/index/words/part.ts";
import { openRun, PAGE_BYTES, type RunHead } from "../../../../src/kb/index/words/run.ts";
import { DamagedIndex } from "../../../../src/kb/index/seal.ts";
import { encodeSegment, openSegment } from "../../../../src/kb/index/words/segment.ts";
import { hashOf } from "../../../../src/kb/index/words/term-hash.ts";
import { queryTerms, type WordSnapshot } from "../../../../src/kb/index/words/query-terms.ts";
import { countTerms, matchWords } from "../../../../src/kb/index/words/word-counts.ts";
import { searchWords } from "../../../../src/kb/index/words/word-search.ts";
import { analyze } from "../../../../src/kb/lexical/analyzer.ts";
import { matchOf, queryWords } from "../../../../src/kb/lexical/word-match.ts";
import { expectedHits, wordsOf } from "./brute-force.ts";
import { randomRuns } from "../../../random-runs.ts";

/** Words of which a few are in most texts, and most in few. */
const word = fc.nat({ max: 40 }).map((number) => `w${Math.floor(number ** 2 / 40)}x`);
const someText = fc.array(word, { maxLength: 30 }).map((words) => words.join(" "));

/** A scope of which everything is known. */
interface Model {
  /** Texts of the chunks by sequence; undefined: removed. */
  readonly texts: (string | undefined)[];
  readonly parts: { part: WalkedPart; removed: ReturnType<typeof makeRemoved> }[];
}

type Step =
  | { readonly add: readonly string[] }
  | { readonly remove: number; readonly upTo: number }
  | { readonly merge: number; readonly count: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ add: fc.array(someText, { minLength: 1, maxLength: 6 }) }) },
  { weight: 1, arbitrary: fc.record({ remove: fc.nat(60), upTo: fc.nat(8) }) },
  { weight: 1, arbitrary: fc.record({ merge: fc.nat(10), count: fc.integer({ min: 1, max: 8 }) }) },
);

function mergedRun(parts: Model["parts"]): WalkedPart {
  const { head, pages } = mergedPages(parts);
  return openRun(head, (first, last) => pages.slice(first, last + 1));
}

function mergedPages(parts: Model["parts"]): { head: RunHead; pages: Buffer[] } {
  const pages: Buffer[] = [];
  const merge = mergeParts(parts);
  let next = merge.next();
  for (; next.done !== true; next = merge.next()) pages.push(...next.value);
  for (const page of pages.slice(0, -1)) expect(page.length).toBe(PAGE_BYTES + 4);
  return { head: next.value, pages };
}

function flipped(bytes: Buffer, bit: number): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeUInt8(copy.readUInt8(bit >>> 3) ^ (1 << (bit & 7)), bit >>> 3);
  return copy;
}

function play(steps: readonly Step[]): Model {
  const model: Model = { texts: [], parts: [] };
  for (const one of steps) {
    if ("add" in one) {
      const part = openSegment(encodeSegment(one.add).data, model.texts.length);
      model.texts.push(...one.add);
      model.parts.push({ part, removed: makeRemoved(part) });
    } else if ("remove" in one) {
      for (let at = one.remove; at <= one.remove + one.upTo && at < model.texts.length; at++) {
        model.texts[at] = undefined;
      }
      for (const { removed } of model.parts) removed.add(one.remove, one.remove + one.upTo);
    } else {
      const chosen = model.parts.slice(one.merge, one.merge + one.count);
      if (chosen.length === 0) continue;
      const part = mergedRun(chosen);
      // The stores keep no run without chunks: it would have no place in the order of the parts.
      const kept = part.rows > 0 ? [{ part, removed: makeRemoved(part) }] : [];
      model.parts.splice(one.merge, chosen.length, ...kept);
    }
  }
  return model;
}

function snapshotOf({ texts, parts }: Model): WordSnapshot {
  return {
    parts,
    chunks: texts.filter((of) => of !== undefined).length,
    words: wordsOf(texts),
  };
}

const EVERYTHING = { first: 0, last: 2 ** 32 - 1, allowed: undefined };

describe("the index of words", () => {
  it("ranks as BM25 over the texts does, after any writes, removals and merges", () => {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 40 }),
        fc.array(word, { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 1, max: 200 }),
        (steps, query, limit) => {
          const model = play(steps);
          const snapshot = snapshotOf(model);
          const words = queryWords(query.join(" "));
          const everything = { words, limit, first: 0, last: model.texts.length, allowed: undefined };
          const found = searchWords(snapshot, everything);
          const expected = expectedHits(model.texts, query.join(" "), 0, model.texts.length);
          expect(found.ceiling).toBeCloseTo(expected.ceiling, 9);
          const scores = expected.hits.slice(0, limit).map(({ bm25 }) => bm25);
          expect(found.hits).toHaveLength(scores.length);
          const bySequence = new Map(expected.hits.map((hit) => [hit.sequence, hit]));
          for (const [at, hit] of found.hits.entries()) {
            expect(hit.bm25).toBeCloseTo(scores[at] ?? 0, 9);
            expect(hit.bm25).toBeCloseTo(bySequence.get(hit.sequence)?.bm25 ?? 0, 9);
            expect(hit.match.matched).toBeCloseTo(bySequence.get(hit.sequence)?.match.matched ?? 0, 9);
            expect(hit.match.strength).toBeCloseTo(bySequence.get(hit.sequence)?.match.strength ?? 0, 9);
          }
        },
      ),
      { numRuns: randomRuns(300) },
    );
  });

  it("searches a part of the chunks with the statistics of all", () => {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 30 }),
        word,
        fc.nat(40),
        fc.nat(20),
        (steps, query, first, more) => {
          const model = play(steps);
          const last = first + more;
          const range = { first, last };
          const words = queryWords(query);
          const expected = expectedHits(model.texts, query, first, last).hits.map(({ sequence }) => sequence);
          const within = searchWords(snapshotOf(model), { words, limit: 100, ...range, allowed: undefined });
          const allowed = makeRowSet(model.texts.length, [
            { first, last: Math.min(last, model.texts.length - 1) },
          ]);
          const all = { first: 0, last: model.texts.length };
          const filtered = searchWords(snapshotOf(model), { words, limit: 100, ...all, allowed });
          const sorted = (hits: readonly { sequence: number }[]) =>
            hits.map(({ sequence }) => sequence).sort((a, b) => a - b);
          expect(sorted(within.hits)).toEqual(expected.toSorted((a, b) => a - b));
          expect(sorted(filtered.hits)).toEqual(expected.toSorted((a, b) => a - b));
        },
      ),
      { numRuns: randomRuns(200) },
    );
  });

  it("counts the words of any chunk, and of none that was removed", () => {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 30 }),
        fc.array(word, { minLength: 1, maxLength: 4 }),
        (steps, query) => {
          const model = play(steps);
          const snapshot = snapshotOf(model);
          const words = queryWords(query.join(" "));
          const all = [...model.texts.keys()];
          const matches = matchWords(snapshot, words, all);
          const counts = countTerms(snapshot, queryTerms(snapshot, words), all);
          for (const [at, of] of model.texts.entries()) {
            const chunk = of === undefined ? undefined : analyze(of);
            const expected = chunk && words.terms.map((term) => chunk.counts[chunk.terms.indexOf(term)] ?? 0);
            expect(matches[at]).toEqual(chunk && expected && matchOf(words.weights, expected, chunk.words));
            const found = counts[at];
            expect(found?.words).toBe(chunk?.words);
            expect(found && words.terms.map((_, term) => found.counts[term] ?? 0)).toEqual(expected);
          }
        },
      ),
      { numRuns: randomRuns(100) },
    );
  });

  it("misses no hit among thousands of chunks with common words", () => {
    let state = 7;
    const random = (): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
      return state / 0x7fffffff;
    };
    const prose = (words: number): string =>
      Array.from({ length: words }, () => `q${Math.floor(900 ** random())}x`).join(" ");
    const model: Model = { texts: [], parts: [] };
    const add = (count: number): void => {
      const texts = Array.from({ length: count }, () => prose(10 + Math.floor(random() * 60)));
      const part = openSegment(encodeSegment(texts).data, model.texts.length);
      model.parts.push({ part, removed: makeRemoved(part) });
      model.texts.push(...texts);
    };
    for (let at = 0; at < 20; at++) add(100);
    const run = mergedRun(model.parts);
    model.parts.splice(0, model.parts.length, { part: run, removed: makeRemoved(run) });
    for (let at = 0; at < 3; at++) add(40);
    for (let at = 0; at < 200; at += 3) {
      model.texts[at] = undefined;
      for (const { removed } of model.parts) removed.add(at, at);
    }
    for (let round = 0; round < 14; round++) {
      const query = prose(1 + (round % 7));
      const words = queryWords(query);
      const expected = expectedHits(model.texts, query, 0, model.texts.length).hits;
      const scoreOf = new Map(expected.map(({ sequence, bm25 }) => [sequence, bm25]));
      for (const limit of [1, 10, 100]) {
        const all = { words, limit, first: 0, last: model.texts.length, allowed: undefined };
        const found = searchWords(snapshotOf(model), all).hits;
        expect(found).toHaveLength(Math.min(limit, expected.length));
        expect(new Set(found.map(({ sequence }) => sequence)).size).toBe(found.length);
        // Sums in another order may differ in the last digit, and so may the order of such hits.
        for (const [at, { sequence, bm25 }] of found.entries()) {
          expect(bm25).toBeCloseTo(expected[at]?.bm25 ?? 0, 9);
          expect(bm25).toBeCloseTo(scoreOf.get(sequence) ?? 0, 9);
        }
      }
    }
  });

  it("finds a chunk by one word of a query with a hundred words that no chunk has", () => {
    const model = play([{ add: ["the needle here", "some hay"] }]);
    const unknown = Array.from({ length: 100 }, (_, at) => `unknown${at}`).join(" ");
    const words = queryWords(`${unknown} needle`);
    const { hits } = searchWords(snapshotOf(model), { words, limit: 5, ...EVERYTHING });
    expect(hits.map(({ sequence }) => sequence)).toEqual([0]);
    const [chunk] = countTerms(snapshotOf(model), queryTerms(snapshotOf(model), words), [0]);
    expect(chunk?.counts[words.terms.indexOf("needl")]).toBe(1);
  });

  it("counts a word that a chunk repeats 70,000 times", () => {
    const snapshot = snapshotOf(play([{ add: ["again ".repeat(70_000)] }]));
    const words = queryWords("again");
    expect(countTerms(snapshot, queryTerms(snapshot, words), [0])[0]?.counts).toEqual([70_000]);
  });

  it("notices every flipped bit of a segment", () => {
    const { data } = encodeSegment(["the needle here", "some hay"]);
    for (let bit = 0; bit < data.length * 8; bit++)
      expect(() => openSegment(flipped(data, bit), 0)).toThrow(DamagedIndex);
    expect(() => openSegment(data.subarray(0, 3), 0)).toThrow(DamagedIndex);
  });

  it("notices a flipped bit and a lost page in whatever a search or a merge reads", () => {
    const rare = (at: number): string => Array.from({ length: 5 }, (_, of) => `r${of}s${at}t`).join(" ");
    const texts = Array.from({ length: 100 }, (_, at) => `common often${at % 3}x ${rare(at)}`);
    const segment = openSegment(encodeSegment(texts).data, 0);
    const { head, pages } = mergedPages([{ part: segment, removed: makeRemoved(segment) }]);
    const readAll = (ofHead: RunHead, ofPages: readonly Buffer[]): void => {
      const run = openRun(ofHead, (first, last) => ofPages.slice(first, last + 1));
      for (const [hash] of termsOf(run)) run.list(hash);
    };
    readAll(head, pages);
    for (const name of ["sequences", "lengths", "directory", "filter"] as const) {
      for (let bit = 0; bit < head[name].length * 8; bit += 7)
        expect(() => {
          readAll({ ...head, [name]: flipped(head[name], bit) }, pages);
        }).toThrow(DamagedIndex);
    }
    expect(pages.length).toBeGreaterThan(1);
    for (const at of pages.keys()) {
      expect(() => {
        readAll(head, pages.with(at, flipped(pages[at] ?? head.filter, 99)));
      }).toThrow(DamagedIndex);
    }
    expect(() => {
      readAll(head, pages.slice(1));
    }).toThrow(DamagedIndex);
  });

  it("finds every term of a run whose lists take many pages, and no other", () => {
    const texts = Array.from({ length: 20_000 }, (_, at) => `common often${at % 3}x rare${at % 7000}y`);
    const parts: Model["parts"] = [];
    for (let first = 0; first < texts.length; first += 100) {
      const part = openSegment(encodeSegment(texts.slice(first, first + 100)).data, first);
      parts.push({ part, removed: makeRemoved(part) });
    }
    const run = mergedRun(parts);
    const listed = new Map([...termsOf(run)].map(([hash, list]) => [hash, list.count]));
    const terms = new Map<string, number>();
    for (const term of texts.flatMap((of) => analyze(of).terms)) terms.set(term, (terms.get(term) ?? 0) + 1);
    expect(listed).toEqual(new Map([...terms].map(([term, count]) => [hashOf(term), count])));
    for (const [term, count] of terms) expect(run.list(hashOf(term))?.count).toBe(count);
    for (let at = 0; at < 1000; at++) expect(run.list(hashOf(`other${at}`))).toBeUndefined();
  });

  it("hashes many terms to as many numbers", () => {
    const hashes = new Set(Array.from({ length: 300_000 }, (_, at) => hashOf(`term${at.toString(36)}`)));
    expect(hashes.size).toBe(300_000);
  });
});
