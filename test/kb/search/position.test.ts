import { hash } from "node:crypto";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bestSentenceOf, citationOf } from "../../../src/kb/chat/passage.ts";
import { queryWords } from "../../../src/kb/lexical/word-match.ts";
import { chunkRecursive } from "../../../src/kb/ingest/chunk/recursive.ts";
import { positionOf, type Position } from "../../../src/kb/search/position.ts";
import { search, type SearchOutcome } from "../../../src/kb/search/search.ts";
import type { LocationStart } from "../../../src/formats/markup/located-text.ts";
import type { Location } from "../../../src/wire/location.ts";
import type { Chunking } from "../../../src/kb/store/chunks.ts";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";
import type { Store } from "../../../src/kb/store/store.ts";
import type { Settings } from "../../../src/wire/primitives.ts";
import { randomRuns } from "../../random-runs.ts";

const NOW = "2026-01-01T00:00:00.000Z";
/** Histories of a document. */
const RUNS = randomRuns(60);
const QUERY = "tide moon harbour crane";

/** One version of a text. */
interface Version {
  readonly content: string;
  readonly locations: readonly LocationStart[] | undefined;
  readonly settings: Settings;
}

const word = fc.constantFrom("tide", "moon", "harbour", "crane", "the", "🌊", "lifts.", "rises?", "a", "");
const sentence = fc.array(word, { minLength: 1, maxLength: 12 }).map((words) => words.join(" "));
const row = fc.tuple(word, word).map(([a, b]) => `| ${a} | ${b} |`);
const block = fc.oneof(
  sentence,
  sentence.map((text) => `## ${text}`),
  fc.array(sentence, { minLength: 1, maxLength: 6 }).map((lines) => lines.join("\n")),
  fc
    .array(row, { minLength: 3, maxLength: 12 })
    .map((rows) => ["| Name | Load |", "| --- | --- |", ...rows].join("\n")),
  fc.array(sentence, { minLength: 1, maxLength: 8 }).map((lines) => ["```sh", ...lines, "```"].join("\n")),
);
const place: fc.Arbitrary<Omit<LocationStart, "start">> = fc.oneof(
  fc.record({ page: fc.integer({ min: 1, max: 9 }) }),
  fc.record({ slide: fc.integer({ min: 1, max: 9 }) }),
  fc.record({ part: fc.constantFrom("message", "a.pdf"), page: fc.constantFrom(undefined, 2) }),
  fc.record({ sheet: fc.constantFrom("Q1", "Q2") }),
  fc
    .tuple(fc.constantFrom("Q1", undefined), fc.integer({ min: 1, max: 9 }), fc.nat(9))
    .map(([sheet, first, more]) => ({ sheet, rows: { first, last: first + more } })),
  fc.constant({}),
);
const version: fc.Arbitrary<Version> = fc
  .record({
    blocks: fc.array(block, { maxLength: 8 }),
    separator: fc.constantFrom("\n\n", "\n", "\r\n\r\n"),
    edge: fc.constantFrom("", "\n", " \n\n"),
    breaks: fc.option(fc.array(fc.tuple(fc.nat(400), place), { maxLength: 6 })),
    chunkSize: fc.integer({ min: 1, max: 150 }),
    overlapShare: fc.double({ min: 0, max: 0.9, noNaN: true }),
  })
  .map(({ blocks, separator, edge, breaks, chunkSize, overlapShare }) => {
    const content = edge + blocks.join(separator) + edge;
    const chunkOverlap = Math.floor(chunkSize * overlapShare);
    return {
      content,
      locations: breaks === null ? undefined : startsOf(breaks, content.length),
      settings: { strategy: "recursive", chunkSize, chunkOverlap },
    };
  });

/** Sorts the places within the text by where they begin. */
function startsOf(
  breaks: readonly (readonly [number, Omit<LocationStart, "start">])[],
  length: number,
): LocationStart[] {
  const starts = new Map(breaks.filter(([start]) => start < length));
  return [...starts].toSorted(([a], [b]) => a - b).map(([start, fields]) => Object.assign({ start }, fields));
}

function chunkingOf({ content, settings }: Version): Chunking {
  return { spans: chunkRecursive(content, settings) };
}

/** Where the text from `start` to `end` stands, found by reading all text before it, character by character. */
function expectedPosition({ content, locations = [] }: Version, start: number, end: number): Position {
  const lineOf = (offset: number): number => content.slice(0, offset).split("\n").length;
  const found: Location[] = [];
  for (let offset = start; offset < end; offset++) {
    const {
      start: from = 0,
      part,
      sheet,
      page,
      slide,
      rows,
    } = locations.findLast((each) => each.start <= offset) ?? {};
    const line = rows && Math.min(rows.first + lineOf(offset) - lineOf(from), rows.last);
    const one = { part, sheet, pages: page, slides: slide, rows: line };
    if (Object.values(one).every((value) => value === undefined)) continue;
    let last = found.at(-1);
    if (last === undefined || last.part !== part || last.sheet !== sheet) {
      last = { ...(part !== undefined && { part }), ...(sheet !== undefined && { sheet }) };
      found.push(last);
    }
    for (const kind of ["pages", "slides", "rows"] as const) {
      const number = one[kind];
      if (number !== undefined) last[kind] = { first: last[kind]?.first ?? number, last: number };
    }
  }
  const pages = found[0]?.part === undefined ? found[0]?.pages : undefined;
  return {
    start,
    end,
    lines: { first: lineOf(start), last: lineOf(end - 1) },
    ...(pages !== undefined && { pages }),
    ...(found.length > 0 && { locations: found }),
  };
}

it.each<[string, string, Pick<Position, "start" | "end">, Position]>([
  [
    "a line feed at its end",
    "one\ntwo\n",
    { start: 14, end: 18 },
    { start: 14, end: 18, lines: { first: 6, last: 6 } },
  ],
  [
    "a line feed at its start",
    "one\ntwo\n",
    { start: 13, end: 17 },
    { start: 13, end: 17, lines: { first: 5, last: 6 } },
  ],
])("counts %s as part of the line that it ends", (_name, text, part, position) => {
  expect(positionOf({ start: 10, end: 18, line: 5, locations: [], text }, part)).toEqual(position);
});

describe("positions", () => {
  let store: Store;
  let accountId = "";
  let collectionId = "";
  let made = 0;
  let cited = 0;

  beforeAll(async () => {
    store = await openSqliteStore();
    accountId = (await store.records.ensureAccount("local")).id;
    collectionId =
      (await store.records.collections(accountId)).find(({ tier }) => tier === "fastest")?.id ?? "";
  });
  afterAll(() => store.close());

  const find = (ownerId: string): Promise<SearchOutcome> => {
    const scope = { accountId, collectionId, ownerId };
    return search(store.index, undefined, {
      scope,
      tier: "fastest",
      query: QUERY,
      topK: 100,
      scoreMin: undefined,
    });
  };

  /** Compares results, citations and chunks with the texts of their versions, the first of which is version 1. */
  const check = ({ results, chunks }: SearchOutcome, versions: readonly Version[]): void => {
    for (const [at, result] of results.entries()) {
      const {
        start,
        end,
        lines,
        pages,
        locations,
        sha256,
        content,
        before = "",
        after = "",
      } = result.payload;
      const text = versions[result.version - 1];
      const chunk = chunks[at];
      if (text === undefined || chunk === undefined) throw new Error(`no text of version ${result.version}`);
      expect(before + text.content.slice(start, end) + after).toBe(content);
      expect({ start, end, lines, pages, locations }).toEqual({
        pages: undefined,
        locations: undefined,
        ...expectedPosition(text, start, end),
      });
      expect(sha256).toBe(hash("sha256", text.content));

      const passage = Object.assign({ number: 1, score: 1 }, chunk);
      const citation = citationOf(passage, bestSentenceOf(passage, queryWords(QUERY)));
      const { span } = citation;
      expect(text.content.slice(span.start, span.end)).toBe(span.text);
      const expected = expectedPosition(text, span.start, span.end);
      expect([citation.lines, citation.pages, citation.locations]).toEqual([
        expected.lines,
        expected.pages,
        expected.locations,
      ]);
      expect([citation.version, citation.sha256, citation.path]).toEqual([
        result.version,
        sha256,
        result.payload.path,
      ]);
      cited += 1;
    }
  };

  it("every result, citation and chunk says exactly where its text stands, during and after updates", async () => {
    await fc.assert(
      fc.asyncProperty(version, version, version, async (one, two, three) => {
        made += 1;
        const id = made.toString(16).padStart(24, "0");
        const ownerId = `owner ${made}`;
        const at = { accountId, id };
        const facts = {
          tier: "fastest",
          origin: "content",
          title: " A \n title",
          description: "",
          url: null,
        } as const;
        await store.records.createResource(
          { ...at, ...facts, ownerId, ...one, createdAt: NOW },
          chunkingOf(one),
        );
        // The third version is the second text in chunks of another size.
        const versions = [one, two, { ...two, settings: three.settings }];
        check(await find(ownerId), versions);
        const [during] = await Promise.all([
          find(ownerId),
          store.records.updateResource({ ...at, ...two, nowIso: NOW }, chunkingOf(two)),
        ]);
        check(during, versions);
        check(await find(ownerId), versions);
        const { settings } = three;
        await store.records.updateResource(
          { ...at, settings, nowIso: NOW },
          chunkingOf({ ...two, settings }),
        );
        check(await find(ownerId), versions);

        const stored = await store.records.chunks(at);
        expect(stored).toMatchObject({ version: 3, sha256: hash("sha256", two.content), url: null });
        for (const chunk of stored?.chunks ?? [])
          expect(positionOf(chunk)).toEqual(expectedPosition(two, chunk.start, chunk.end));
        await store.records.deleteResource({ ...at, nowIso: NOW });
      }),
      { numRuns: RUNS },
    );
    expect(cited).toBeGreaterThan(RUNS * 10);
  }, 60_000);
});
