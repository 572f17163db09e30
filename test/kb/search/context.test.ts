import assert from "node:assert/strict";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chunkRecursive } from "../../../src/kb/ingest/chunk/recursive.ts";
import { withContext, type ContextRequest } from "../../../src/kb/search/context.ts";
import { resultOf, type SearchOutcome } from "../../../src/kb/search/search.ts";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";
import type { FoundChunk, Scope } from "../../../src/kb/store/search-index.ts";
import type { Store } from "../../../src/kb/store/store.ts";
import { countTokens } from "../../../src/lib/tokens.ts";
import { randomRuns } from "../../random-runs.ts";

let store: Store;
let made = 0;
beforeAll(async () => {
  store = await openSqliteStore();
});
afterAll(() => store.close());

interface Filled {
  readonly scope: Scope;
  readonly texts: ReadonlyMap<string, string>;
  readonly chunks: readonly FoundChunk[];
}

/** Stores texts as documents of an owner of their own. */
async function fill(texts: readonly string[], chunkSize = 200, chunkOverlap = 40): Promise<Filled> {
  const { id: accountId } = await store.records.ensureAccount("local");
  const ownerId = `owner ${++made}`;
  const settings = { strategy: "recursive", chunkSize, chunkOverlap } as const;
  const byId = new Map<string, string>();
  const refs: number[] = [];
  for (const content of texts) {
    const id = (++made).toString(16).padStart(24, "0");
    byId.set(id, content);
    const at = { accountId, id, ownerId, settings, content, tier: "fastest", origin: "content" } as const;
    const named = {
      title: `Text ${byId.size}`,
      description: "",
      url: null,
      createdAt: "2026-01-02T03:04:05.678Z",
    };
    const spans = chunkRecursive(content, settings);
    await store.records.createResource({ ...at, ...named }, { spans });
    refs.push(...((await store.records.chunks({ accountId, id }))?.chunks ?? []).map(({ ref }) => ref));
  }
  const collection = (await store.records.collections(accountId)).find(({ tier }) => tier === "fastest");
  const scope = { accountId, collectionId: collection?.id ?? "", ownerId };
  return { scope, texts: byId, chunks: await store.index.foundChunks(scope, refs) };
}

/** An outcome of a search that found these chunks, the first one best. */
function foundIn(chunks: readonly FoundChunk[]): SearchOutcome {
  const results = chunks.map((chunk, at) => resultOf(chunk, 0.9 - at / 1000));
  return { results, chunks, text: chunks.map(({ text }) => text).join("\n\n") };
}

const ask = async ({ scope }: Filled, chunks: readonly FoundChunk[], request: ContextRequest) =>
  withContext(store.index, scope, foundIn(chunks), request);

const HANDBOOK = `# Harbour

Ships wait outside until the pilot comes.

## Tides

The gate opens two hours before high water. ${"The water rises slowly at first. ".repeat(6)}

It closes when the ebb begins.

### Springs

At springs the gate stays open longer.

## Fees

A berth costs forty crowns. ${"Boats of members lie free of charge. ".repeat(8)}`;

describe("expansion", () => {
  it("returns the chunks on each side", async () => {
    const filled = await fill([HANDBOOK], 200, 0);
    const [first, second, third, fourth] = filled.chunks;
    assert(first && second && third && fourth);
    const one = await ask(filled, [second], { sides: 1, tokensMax: 4000 });
    expect(one.results[0]?.payload).toMatchObject({ start: first.start, end: third.end });
    const two = await ask(filled, [second], { sides: 2, tokensMax: 4000 });
    expect(two.results[0]?.payload).toMatchObject({ start: first.start, end: fourth.end });
  });

  it("returns hits whose texts touch as one result, and others apart", async () => {
    const filled = await fill([HANDBOOK], 100, 0);
    const [first, , third] = filled.chunks;
    const last = filled.chunks.at(-1);
    assert(first && third && last);
    const { results } = await ask(filled, [third, last, first], { sides: 1, tokensMax: 4000 });
    expect(results.map(({ payload }) => payload.hits?.map(({ id }) => id))).toEqual([
      [third.id, first.id],
      [last.id],
    ]);
  });

  it("returns fewer chunks around the best hit where more do not fit, and no hit without all of its text", async () => {
    const filled = await fill([HANDBOOK], 200, 0);
    const [, second, third] = filled.chunks;
    assert(second && third);
    const whole = await ask(filled, [second, third], { sides: 2, tokensMax: 4000 });
    const own = countTokens(second.text);
    const cut = await ask(filled, [second, third], { sides: 2, tokensMax: own + 5 });
    expect(whole.results[0]?.payload.hits).toHaveLength(2);
    expect(cut.results[0]?.payload).toMatchObject({
      start: second.start,
      end: second.end,
      content: second.text,
    });
    expect(cut.results[0]?.payload.hits).toEqual([
      { id: second.id, score: 0.9, start: second.start, end: second.end },
    ]);
  });

  it("returns the beginning of the best hit where all of it does not fit", async () => {
    const filled = await fill([HANDBOOK], 1000, 0);
    const [hit] = filled.chunks;
    assert(hit);
    const { results, text } = await ask(filled, [hit], { sides: 1, tokensMax: 10 });
    expect(hit.text.startsWith(text)).toBe(true);
    expect(countTokens(text)).toBe(10);
    expect(results[0]?.payload).toMatchObject({ start: hit.start, end: hit.start + text.length });
  });

  it("returns a hit whose document changed since as it was found", async () => {
    const filled = await fill([HANDBOOK]);
    const [hit] = filled.chunks;
    assert(hit);
    const { accountId } = filled.scope;
    await store.records.deleteResource({ accountId, id: hit.resourceId, nowIso: "2026-01-03T03:04:05.678Z" });
    const { results } = await ask(filled, [hit], { sides: 2, tokensMax: 4000 });
    expect(results[0]?.payload).toMatchObject({ content: hit.text, start: hit.start, end: hit.end });
  });
});

const word = fc.constantFrom(
  "ebb",
  "flow",
  "The tide",
  "gate",
  "Ends here.",
  "🌊",
  "прилив",
  "2026",
  "a < b",
);
const line = fc
  .tuple(
    fc.constantFrom("", "# ", "## ", "### ", "- ", "    ", "| "),
    fc.array(word, { minLength: 1, maxLength: 12 }),
  )
  .map(([mark, words]) => mark + words.join(" "));
const markdown = fc
  .array(fc.oneof({ weight: 5, arbitrary: line }, fc.constantFrom("", "", "```", "---")), { maxLength: 60 })
  .map((lines) => lines.join("\n"));
const asked = fc.record({
  sides: fc.integer({ min: 1, max: 4 }),
  tokensMax: fc.oneof(fc.integer({ min: 50, max: 300 }), fc.integer({ min: 50, max: 5000 })),
});
const cases = fc.record({
  texts: fc.array(markdown, { minLength: 1, maxLength: 3 }),
  size: fc.constantFrom([60, 0], [120, 30], [300, 100]),
  order: fc.array(fc.nat(), { minLength: 1, maxLength: 30 }),
  request: asked,
});

/** Picks different items by arbitrary numbers. */
function picked<T>(items: readonly T[], numbers: readonly number[]): T[] {
  return [...new Set(numbers.flatMap((number) => items[number % Math.max(1, items.length)] ?? []))];
}

describe("every answer", () => {
  it("keeps its budget, repeats no text, equals the documents and descends by score", async () => {
    await fc.assert(
      fc.asyncProperty(cases, async ({ texts, size: [chunkSize = 0, overlap = 0], order, request }) => {
        const filled = await fill(texts, chunkSize, overlap);
        const found = picked(filled.chunks, order);
        const { results, text } = await ask(filled, found, request);
        const all = foundIn(found).results;

        expect(text).toBe(results.map(({ payload }) => payload.content).join("\n\n"));
        expect(countTokens(text)).toBeLessThanOrEqual(request.tokensMax);

        const ends = new Map<string, [number, number][]>();
        for (const { id, score, payload } of results) {
          const { resourceId, content, start, end, lines, hits = [] } = payload;
          const document = filled.texts.get(resourceId) ?? "";
          expect(content).toBe(document.slice(start, end));
          expect(lines?.first).toBe(document.slice(0, start).split("\n").length);
          for (const [from, to] of ends.get(resourceId) ?? []) expect(end <= from || start >= to).toBe(true);
          ends.set(resourceId, [...(ends.get(resourceId) ?? []), [start, end]]);
          expect(hits[0]).toMatchObject({ id, score });
          for (const hit of hits) {
            expect(all.find((each) => each.id === hit.id)?.score).toBe(hit.score);
            expect(start <= hit.start && hit.start < hit.end && hit.end <= end).toBe(true);
          }
        }
        const scores = results.map(({ score }) => score);
        expect(scores).toEqual(scores.toSorted((a, b) => b - a));
        expect(results.length).toBeGreaterThan(found.length === 0 ? -1 : 0);
        const covered = results.flatMap(({ payload }) => payload.hits ?? []).map(({ id }) => id);
        expect(new Set(covered).size).toBe(covered.length);
      }),
      { numRuns: randomRuns(300) },
    );
  }, 120_000);
});
