import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { metadataEntries } from "../../../src/kb/store/metadata.ts";
import { type Filter, isDate, type MetadataScalar, type RangeBound } from "../../../src/wire/filter.ts";
import { byVector, byWords, LATER, type StoreFixture, unit, wordsOnly } from "./store-fixture.ts";
import { updateEmbedded } from "./embedded.ts";

type Metadata = Readonly<Record<string, unknown>>;

/** Evaluates a filter without an index, as a reference. */
function fits(metadata: Metadata, filter: Filter): boolean {
  const at = (path: string): MetadataScalar[] =>
    metadataEntries(metadata).flatMap((entry) => (entry.path === path ? [entry.value] : []));
  switch (filter.kind) {
    case "and":
      return filter.of.every((each) => fits(metadata, each));
    case "or":
      return filter.of.some((each) => fits(metadata, each));
    case "not":
      return !fits(metadata, filter.of);
    case "in":
      return at(filter.path).some((value) => filter.values.includes(value));
    case "range":
      if (filter.bounds.every((bound) => isDate(bound.value))) {
        const moments = filter.bounds.map((bound) => ({ ...bound, value: momentOf(bound.value) }));
        return at(filter.path).some(
          (value) => isDate(value) && moments.every((bound) => isWithin(momentOf(value), bound)),
        );
      }
      return at(filter.path).some((value) => filter.bounds.every((bound) => isWithin(value, bound)));
  }
}

/** Returns the milliseconds of a date that has its time zone, if it has a time. */
function momentOf(date: MetadataScalar): number {
  return Date.parse(String(date));
}

function isWithin(value: MetadataScalar, { operator, value: bound }: RangeBound): boolean {
  if (typeof value !== typeof bound || value === null) return false;
  switch (operator) {
    case "gt":
      return value > bound;
    case "gte":
      return value >= bound;
    case "lt":
      return value < bound;
    case "lte":
      return value <= bound;
  }
}

const path = fc.constantFrom("a", "b", "deep.c");
/** Around midnight of one night, in several time zones and precisions; two of them are the same moment. */
const DATES = [
  "2026-01-05",
  "2026-01-05T00:00:00Z",
  "2026-01-05T00:00:00.000Z",
  "2026-01-05T00:00:00.001Z",
  "2026-01-04T23:30:00Z",
  "2026-01-05T13:00:00+14:00",
  "2026-01-04T12:30:00-12:00",
  "2026-01-04T11:00:00-12:00",
  "9999-12-31",
];
const scalar = fc.oneof(
  fc.constantFrom<MetadataScalar>(
    "x",
    "y",
    "1",
    1,
    2,
    1.5,
    0,
    true,
    false,
    null,
    "2026-01-05 noon",
    "2461045",
  ),
  fc.constantFrom(...DATES),
);
const { filter: anyFilter } = fc.letrec<{ filter: Filter }>((tie) => ({
  filter: fc.oneof(
    { depthSize: "small" },
    fc.record({
      kind: fc.constant("in" as const),
      path,
      values: fc.array(scalar, { minLength: 1, maxLength: 3 }),
    }),
    fc.record({
      kind: fc.constant("range" as const),
      path,
      bounds: fc.oneof(
        bounds(fc.constantFrom<number | string>(0, 1, 1.5, 2)),
        bounds(fc.constantFrom<number | string>("1", "x", "y")),
        bounds(fc.constantFrom<number | string>(...DATES)),
      ),
    }),
    fc.record({
      kind: fc.constantFrom("and" as const, "or" as const),
      of: fc.array(tie("filter"), { minLength: 1, maxLength: 3 }),
    }),
    fc.record({ kind: fc.constant("not" as const), of: tie("filter") }),
  ),
}));

function bounds(value: fc.Arbitrary<number | string>): fc.Arbitrary<RangeBound[]> {
  const operator = fc.constantFrom("gt" as const, "gte" as const, "lt" as const, "lte" as const);
  return fc.array(fc.record({ operator, value }), { minLength: 1, maxLength: 2 });
}

/** Metadata, and filters within the index lookup. */
export function filterContract(fixture: StoreFixture): void {
  const { create, scope, texts } = fixture;
  const lang = (value: string): Filter => ({ kind: "in", path: "lang", values: [value] });

  describe("metadata and filters", () => {
    it("returns metadata, replaces it as a whole, and filters by it", async () => {
      const metadata = { lang: "de", year: 2024, deep: { tags: ["a", "b"], none: null } };
      const { id } = await create("moon words", { metadata });
      const at = { accountId: fixture.account.id, id };
      expect((await fixture.store.records.resource(at))?.metadata).toEqual(metadata);
      const within = await scope();
      expect(await texts("moon", { ...within, filter: lang("de") })).toEqual(["moon words"]);
      const changed = await updateEmbedded(
        fixture.store,
        { ...at, metadata: { lang: "en" }, nowIso: LATER },
        undefined,
      );
      expect(changed).toMatchObject({ metadata: { lang: "en" }, version: 1, revision: 2 });
      expect(await texts("moon", { ...within, filter: lang("de") })).toEqual([]);
      expect(await texts("moon", { ...within, filter: lang("en") })).toEqual(["moon words"]);
      await fixture.store.records.updateResource(
        { ...at, content: "moon anew", nowIso: LATER },
        wordsOnly("moon anew"),
      );
      expect(await texts("moon", { ...within, filter: lang("en") })).toEqual(["moon anew"]);
      await fixture.store.records.deleteResource({ ...at, nowIso: LATER });
      expect(await texts("moon", { ...within, filter: { kind: "not", of: lang("x") } })).toEqual([]);
    });

    it("finds all hits of a rare filter, by words and by vector", async () => {
      const vector = unit([1, 2, 3, 4]);
      const made = Array.from({ length: 600 }, (_, at) => {
        const text = `moon ${"moon ".repeat(at % 7)}words ${at}`;
        const spans = [{ start: 0, end: text.length, headings: [] }];
        const values = [unit([1, 2, 3, 4 + at / 100])];
        return create(
          text,
          { metadata: { rare: at % 200 === 7 }, tier: "moderate" },
          { spans, vectors: values, fingerprint: "f" },
        );
      });
      await Promise.all(made);
      const filter: Filter = { kind: "in", path: "rare", values: [true] };
      const within = { ...(await scope("ann", "moderate")), filter };
      const { hits } = await byWords(fixture.store, { scope: within, query: "moon", limit: 3 });
      const nearest = await byVector(fixture.store, { scope: within, vector, fingerprint: "f", limit: 3 });
      expect([hits.length, nearest.length]).toEqual([3, 3]);
      expect(new Set(hits.map(({ ref }) => ref))).toEqual(new Set(nearest.map(({ ref }) => ref)));
      const often: Filter = { kind: "not", of: filter };
      const most = await byVector(fixture.store, {
        scope: { ...within, filter: often },
        vector,
        fingerprint: "f",
        limit: 600,
      });
      expect(most.length).toBe(597);
    }, 30_000);

    it("gives a chunk the same score with a filter as without", async () => {
      await create("moon and sea", { metadata: { lang: "de" } });
      await create("moon alone", { metadata: { lang: "en" } });
      const within = await scope();
      const all = await byWords(fixture.store, { scope: within, query: "moon sea", limit: 5 });
      const some = await byWords(fixture.store, {
        scope: { ...within, filter: lang("de") },
        query: "moon sea",
        limit: 5,
      });
      expect(some).toEqual({ ceiling: all.ceiling, hits: all.hits.slice(0, 1) });
    });

    it("applies any filter as the reference does", async () => {
      const value = fc.oneof(scalar, fc.array(scalar, { maxLength: 3 }));
      const metadatas = fc.sample(
        fc.record({ a: value, b: value, deep: fc.record({ c: value }) }, { requiredKeys: [] }),
        { numRuns: 60, seed: 42 },
      );
      for (const [at, metadata] of metadatas.entries()) await create(`moon ${at}`, { metadata });
      const within = await scope();
      await fc.assert(
        fc.asyncProperty(anyFilter, async (filter) => {
          const { hits } = await byWords(fixture.store, {
            scope: { ...within, filter },
            query: "moon",
            limit: 100,
          });
          expect(hits.length).toBe(metadatas.filter((metadata) => fits(metadata, filter)).length);
        }),
        { numRuns: 150 },
      );
    }, 30_000);
  });
}
