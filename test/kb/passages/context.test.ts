import assert from "node:assert/strict";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chunkRecursive } from "../../../src/kb/ingest/chunk/recursive.ts";
import { withContext, type ContextRequest } from "../../../src/kb/passages/context.ts";
import { expandHits, type Hit } from "../../../src/kb/passages/passages.ts";
import { resultOf, type SearchOutcome } from "../../../src/kb/search/search.ts";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";
import type { FoundChunk, Scope } from "../../../src/kb/store/search-index.ts";
import type { Store } from "../../../src/kb/store/store.ts";
import { countTokens } from "../../../src/lib/tokens.ts";
import { randomRuns } from "../../random-runs.ts";

const PLAIN: ContextRequest = {
  query: "",
  expand: undefined,
  maxTokens: undefined,
  maxPerDocument: undefined,
  collapse: false,
  offset: 0,
  topK: 100,
};

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
  return { results, chunks, bases: new Map(), text: chunks.map(({ text }) => text).join("\n\n") };
}

function chunkWith({ chunks }: Filled, words: string): FoundChunk {
  const found = chunks.find(({ text }) => text.includes(words));
  assert(found);
  return found;
}

const ask = async ({ scope }: Filled, chunks: readonly FoundChunk[], request: Partial<ContextRequest>) =>
  withContext(store.index, scope, foundIn(chunks), { ...PLAIN, ...request });

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
  it("returns the section of a hit, with its place", async () => {
    // Long enough not to grow.
    const document = HANDBOOK.replace(
      "It closes",
      `${"The water rises slowly at first. ".repeat(90)}\n\nIt closes`,
    );
    const filled = await fill([document]);
    const hit = chunkWith(filled, "It closes when");
    const { results, text, budget } = await ask(filled, [hit], { expand: "section", maxTokens: 1000 });
    const start = document.indexOf("## Tides");
    const end = document.indexOf("\n\n## Fees");
    expect(results).toMatchObject([
      {
        id: hit.id,
        score: 0.9,
        payload: {
          content: document.slice(start, end),
          start,
          end,
          lines: { first: 5, last: 15 },
          hits: [{ id: hit.id, score: 0.9, start: hit.start, end: hit.end }],
        },
      },
    ]);
    expect(text).toBe(results[0]?.payload.content);
    expect(budget).toEqual({
      tokenizer: "kbsync-1",
      tokens: countTokens(text),
      maxTokens: 1000,
      nextOffset: null,
    });
  });

  it("grows a short section to what is around it", async () => {
    const filled = await fill([HANDBOOK]);
    const hit = chunkWith(filled, "At springs");
    const { results } = await ask(filled, [hit], { expand: "section", maxTokens: 4000 });
    expect(results[0]?.payload.content).toBe(HANDBOOK.trim());
  });

  it("cuts a section that is too long around the hit, at the ends of sentences", async () => {
    const sentences = Array.from({ length: 200 }, (_, at) => `Sentence ${at} says little.`);
    const filled = await fill([`# Long\n\n${sentences.join(" ")}`]);
    const hit = chunkWith(filled, "Sentence 100 ");
    const { results, budget } = await ask(filled, [hit], { expand: "section", maxTokens: 300 });
    const content = results[0]?.payload.content ?? "";
    expect(content).toMatch(/^Sentence \d+ says/);
    expect(content).toMatch(/says little\.$/);
    expect(content).toContain("Sentence 100 ");
    expect(budget.tokens).toBeLessThanOrEqual(300);
    expect(budget.tokens).toBeGreaterThan(280);
  });

  it("returns what a cut leaves of another hit as a result of its own, without repeating text", async () => {
    const sentences = Array.from({ length: 200 }, (_, at) => `Sentence ${at} says little.`);
    const filled = await fill([`# Long\n\n${sentences.join(" ")}`], 400, 0);
    const best = chunkWith(filled, "Sentence 100 ");
    const next = filled.chunks.find(({ start }) => start === best.end + 1);
    assert(next);
    // Its own text is too long for what is left.
    const last = chunkWith(filled, "Sentence 10 ");
    const request = { expand: "section", maxTokens: 250 } as const;
    const { results, budget } = await ask(filled, [best, next, last], request);
    const [first, second] = results.map(({ payload }) => payload);
    assert(first && second);
    expect(first.hits).toMatchObject([{ id: best.id }]);
    expect(second.hits).toMatchObject([{ id: next.id }]);
    expect(second.start).toBe(first.end + 1);
    expect(second.end).toBeGreaterThanOrEqual(next.end);
    expect(results).toHaveLength(2);
    expect(budget.nextOffset).toBe(2);
  });

  it("returns first the passage whose text is about the query, and then that of the best hit", async () => {
    const about = `# Mooring

Mooring fees of the harbour are due. ${"The harbour sets the mooring fees. ".repeat(8)}`;
    const filled = await fill([
      `# Weather

Fees. ${"It rains most of the year. ".repeat(12)}`,
      about,
    ]);
    const [chance, hit] = [chunkWith(filled, "# Weather"), chunkWith(filled, "# Mooring")];
    const request = { expand: "section", maxTokens: 400 } as const;
    const plain = await ask(filled, [chance, hit], request);
    expect(plain.results.map(({ id }) => id)).toEqual([chance.id, hit.id]);
    const { results } = await ask(filled, [chance, hit], {
      ...request,
      query: "mooring fees of the harbour",
    });
    expect(results.map(({ id }) => id)).toEqual([hit.id, chance.id]);
    const [first, second] = results;
    assert(first && second);
    expect(first.score).toBeGreaterThan(second.score);
    expect(first.payload.hits?.[0]?.score).toBe(0.899);
    expect(second.score).toBe(0.9);
  });

  it("keeps the best hit first if only one of both fits", async () => {
    const about = `# Mooring

Mooring fees of the harbour are due. ${"The harbour sets the mooring fees. ".repeat(8)}`;
    const filled = await fill([
      `# Weather

Fees. ${"It rains most of the year. ".repeat(12)}`,
      about,
    ]);
    const [chance, hit] = [chunkWith(filled, "# Weather"), chunkWith(filled, "# Mooring")];
    const query = "mooring fees of the harbour";
    const { results, budget } = await ask(filled, [chance, hit], { expand: "section", maxTokens: 60, query });
    expect(results.map(({ id }) => id)).toEqual([chance.id]);
    expect(budget.nextOffset).toBe(1);
  });

  it("gives the first result what is left when the next one does not fit", async () => {
    const sentences = Array.from({ length: 200 }, (_, at) => `Sentence ${at} says little.`);
    const filled = await fill(
      [
        `# Long

${sentences.join(" ")}`,
        `# Other

${"Another text, and a longer one. ".repeat(11)}`,
      ],
      400,
      0,
    );
    const best = chunkWith(filled, "Sentence 100 ");
    const other = chunkWith(filled, "# Other");
    const request = { expand: "section", maxTokens: 200 } as const;
    const { results, budget } = await ask(filled, [best, other], request);
    expect(results.map(({ id }) => id)).toEqual([best.id]);
    expect(budget.tokens).toBeGreaterThan(185);
    expect(budget.tokens).toBeLessThanOrEqual(200);
    expect(budget.nextOffset).toBe(1);
    const neighbours = await ask(filled, [best, other], { expand: 1, maxTokens: 200 });
    expect(neighbours.results[0]?.payload.end).toBeLessThanOrEqual(best.end + 400);
  });

  it("takes no line of code for a heading", async () => {
    const code = Array.from({ length: 30 }, (_, at) => `# comment ${at}\nstep_${at}()`).join("\n");
    const filled = await fill([
      `# Script\n\nIt runs.\n\n\`\`\`sh\n${code}\n\`\`\`\n\n# Next\n\n${"Other text. ".repeat(200)}`,
    ]);
    const hit = chunkWith(filled, "step_20()");
    const { results } = await ask(filled, [hit], { expand: "section", maxTokens: 4000 });
    expect(results[0]?.payload.content).toContain("# Script\n\nIt runs.");
    expect(results[0]?.payload.content).toContain("step_29()");
  });

  it("returns the chunks on each side", async () => {
    const filled = await fill([HANDBOOK], 200, 0);
    const [first, second, third, fourth] = filled.chunks;
    assert(first && second && third && fourth);
    const one = await ask(filled, [second], { expand: "neighbours", maxTokens: 4000 });
    expect(one.results[0]?.payload).toMatchObject({ start: first.start, end: third.end });
    const two = await ask(filled, [second], { expand: 2, maxTokens: 4000 });
    expect(two.results[0]?.payload).toMatchObject({ start: first.start, end: fourth.end });
  });

  it("returns a hit whose document changed since as it was found", async () => {
    const filled = await fill([HANDBOOK]);
    const [hit] = filled.chunks;
    assert(hit);
    const { accountId } = filled.scope;
    await store.records.deleteResource({ accountId, id: hit.resourceId, nowIso: "2026-01-03T03:04:05.678Z" });
    const { results } = await ask(filled, [hit], { expand: "section", maxTokens: 4000 });
    expect(results[0]?.payload).toMatchObject({ content: hit.text, start: hit.start, end: hit.end });
  });
});

describe("collapsing and limits", () => {
  it("returns one of the documents with the same text, and names the others", async () => {
    const filled = await fill([HANDBOOK, HANDBOOK, HANDBOOK.replace("forty", "fifty")], 1000);
    const firsts = filled.chunks.filter(({ start }) => start === 0);
    const { results } = await ask(filled, firsts, { collapse: true });
    expect(results).toHaveLength(1);
    expect(results[0]?.payload.duplicates).toBe(2);
    expect(results[0]?.payload.duplicateDocuments).toEqual(
      firsts.slice(1).map(({ resourceId, title }) => ({ resourceId, title })),
    );
    expect((await ask(filled, firsts, {})).results).toHaveLength(3);
  });

  it("returns as many hits of a document as asked for, and with a smaller top_k the first ones", async () => {
    const filled = await fill([HANDBOOK, HANDBOOK]);
    const request = { collapse: true, maxPerDocument: 2 };
    const { results } = await ask(filled, filled.chunks, request);
    expect(results).toHaveLength(2);
    const fewer = await ask(filled, filled.chunks, { ...request, topK: 1 });
    expect(fewer.results).toEqual(results.slice(0, 1));
    expect(fewer.budget.nextOffset).toBe(1);
    const rest = await ask(filled, filled.chunks, { ...request, topK: 5, offset: 1 });
    expect(rest.results).toEqual(results.slice(1));
    expect(rest.budget.nextOffset).toBeNull();
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
  expand: fc.constantFrom("section" as const, "neighbours" as const, 3),
  maxTokens: fc.oneof(fc.integer({ min: 50, max: 300 }), fc.integer({ min: 50, max: 5000 })),
  maxPerDocument: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
  collapse: fc.boolean(),
  query: fc.oneof(fc.constant(""), fc.constantFrom("ebb tide", "gate flow 2026", "прилив")),
  offset: fc.integer({ min: 0, max: 5 }),
  topK: fc.integer({ min: 1, max: 20 }),
});
const cases = fc.record({
  texts: fc.array(markdown, { minLength: 1, maxLength: 3 }),
  size: fc.constantFrom([60, 0], [120, 30], [300, 100], [30, 28]),
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
        const { results, text, budget } = await ask(filled, found, request);
        const all = foundIn(found).results;

        expect(text).toBe(results.map(({ payload }) => payload.content).join("\n\n"));
        expect(budget.tokens).toBe(countTokens(text));
        expect(budget.tokens).toBeLessThanOrEqual(request.maxTokens);

        const ends = new Map<string, [number, number][]>();
        for (const [at, { id, score, payload }] of results.entries()) {
          const { resourceId, content, start, end, lines, hits = [] } = payload;
          const document = filled.texts.get(resourceId) ?? "";
          expect(content).toBe(document.slice(start, end));
          expect(lines?.first).toBe(document.slice(0, start).split("\n").length);
          for (const [from, to] of ends.get(resourceId) ?? []) expect(end <= from || start >= to).toBe(true);
          ends.set(resourceId, [...(ends.get(resourceId) ?? []), [start, end]]);
          expect(hits[0]?.id).toBe(id);
          // The first result may have the score of the best hit, which follows.
          const own = hits[0]?.score ?? 1;
          expect(at === 0 ? Math.min(score, own) : score).toBe(own);
          for (const hit of hits) {
            expect(all.find((each) => each.id === hit.id)?.score).toBe(hit.score);
            expect(start <= hit.start && hit.start < hit.end && hit.end <= end).toBe(true);
          }
        }
        const scores = results.map(({ score }) => score);
        expect(scores).toEqual(scores.toSorted((a, b) => b - a));

        const covered = results.flatMap(({ payload }) => payload.hits ?? []).map(({ id }) => id);
        expect(new Set(covered).size).toBe(covered.length);
        const isWhole = !request.collapse && request.maxPerDocument === undefined;
        const next = Math.min(budget.nextOffset ?? Infinity, request.offset + request.topK);
        expect(covered).toEqual(
          expect.arrayContaining(isWhole ? all.slice(request.offset, next).map(({ id }) => id) : []),
        );
      }),
      { numRuns: randomRuns(300) },
    );
  }, 120_000);

  it("merges the same passages whatever the order of the hits and of the texts", async () => {
    await fc.assert(
      fc.asyncProperty(cases, async ({ texts, size: [chunkSize = 0, overlap = 0], order, request }) => {
        const filled = await fill(texts, chunkSize, overlap);
        const found = picked(filled.chunks, order);
        const hits = found.map((chunk, at): Hit => ({ chunk, score: 0.9 - at / 1000, duplicates: [] }));
        const around = await store.index.surroundings({
          scope: filled.scope,
          refs: found.map(({ ref }) => ref),
          chunksMax: 5,
          charsMax: 1000,
        });
        const merged = (given: readonly Hit[]): unknown =>
          expandHits(given, found, around, request.expand, 200).map(({ range, hits: its }) => [
            range,
            its.map(({ chunk }) => chunk.id),
          ]);
        expect(merged(hits.toReversed())).toEqual(merged(hits));
      }),
      { numRuns: randomRuns(60) },
    );
  }, 120_000);
});
