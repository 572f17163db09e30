import { countTokens } from "../../lib/tokens.ts";
import type { FoundResult } from "../../wire/answers.ts";
import { ANSWER_TOKENS_DEFAULT, type SearchContext } from "../../wire/context.ts";
import type { FoundChunk, Index, Scope, Surroundings } from "../store/search-index.ts";
import { positionOf } from "./position.ts";
import { resultOf, type SearchOutcome } from "./search.ts";

/** How much the results of a search say. */
export interface ContextRequest {
  /** Chunks to add on each side of a hit. */
  readonly sides: number;
  readonly tokensMax: number;
}

/** Characters read on each side of a hit: as many chunks as may be asked for have, of a usual length. */
const SIDE_CHARS = 16_000;
/** Separates the texts of an answer. */
const SEPARATOR = "\n\n";

/** Returns what a body asks for in addition to its hits; undefined: nothing. */
export function contextOf({ expand, max_tokens: tokensMax }: SearchContext): ContextRequest | undefined {
  if (expand === undefined && tokensMax === undefined) return undefined;
  const sides = expand === "neighbours" ? 1 : (expand ?? 0);
  return { sides, tokensMax: tokensMax ?? ANSWER_TOKENS_DEFAULT };
}

/**
 * Returns the hits of a search with the chunks on each side, those of one document that touch as one result, as many as have
 * `tokensMax` tokens together. A result that does not fit has fewer chunks around its best hit, and the first one at least the
 * beginning of that.
 */
export async function withContext(
  index: Pick<Index, "surroundings">,
  scope: Scope,
  outcome: SearchOutcome,
  { sides, tokensMax }: ContextRequest,
): Promise<SearchOutcome> {
  const hits = outcome.chunks.map((chunk, at): Hit => ({ chunk, score: outcome.results[at]?.score ?? 0 }));
  const passages = sides === 0 ? hits.map(ownPassage) : await expanded(index, scope, hits, sides);
  const fitted = fitPassages(passages, sides, tokensMax);
  return {
    ...outcome,
    text: fitted.map(({ content }) => content).join(SEPARATOR),
    results: fitted.map((each) => resultWith(each, sides > 0)),
    chunks: fitted.map(({ hits: [best] }) => best.chunk),
  };
}

/** A chunk that the search found. */
interface Hit {
  readonly chunk: FoundChunk;
  readonly score: number;
}

/** A part of a document with the hits in it, best first. */
interface Passage {
  readonly hits: readonly [Hit, ...Hit[]];
  readonly start: number;
  readonly end: number;
  readonly content: string;
  /** The text that it is a part of; undefined for a chunk as the search found it. */
  readonly source?: Pick<Surroundings, "start" | "text" | "line" | "locations">;
  /** The chunks of that text, where it has more than the hit. */
  readonly chunks?: Surroundings["chunks"];
}

function ownPassage(hit: Hit): Passage {
  const { start, end, text } = hit.chunk;
  return { hits: [hit], start, end, content: text };
}

/** Adds the chunks on each side. A hit whose document changed since stays as it was found. */
async function expanded(
  index: Pick<Index, "surroundings">,
  scope: Scope,
  hits: readonly Hit[],
  sides: number,
): Promise<readonly Passage[]> {
  const refs = hits.map(({ chunk }) => chunk.ref);
  const sources = await index.surroundings({ scope, refs, chunksMax: sides, charsMax: SIDE_CHARS });
  const around = sources.flatMap((source) => passagesIn(source, hits, sides));
  const covered = new Set(around.flatMap((passage) => passage.hits));
  const others = hits.filter((hit) => !covered.has(hit)).map(ownPassage);
  return [...around, ...others].toSorted((a, b) => byRank(a.hits[0], b.hits[0]));
}

/** Returns the passages of a text: the hits with so many chunks on each side, those that overlap or touch as one. Pure. */
function passagesIn(source: Surroundings, hits: readonly Hit[], sides: number): Passage[] {
  const atOf = new Map(source.chunks.map(({ ref }, at) => [ref, at]));
  const inside = hits.filter(({ chunk }) => atOf.has(chunk.ref));
  const ranges: { first: number; last: number }[] = [];
  for (const at of inside.map(({ chunk }) => atOf.get(chunk.ref) ?? 0).toSorted((a, b) => a - b)) {
    const before = ranges.at(-1);
    const [first, last] = [Math.max(0, at - sides), Math.min(source.chunks.length - 1, at + sides)];
    if (before !== undefined && first <= before.last + 1) before.last = last;
    else ranges.push({ first, last });
  }
  return ranges.flatMap(({ first, last }) => {
    const [best, ...others] = inside
      .filter(({ chunk }) => within(atOf.get(chunk.ref) ?? -1, first, last))
      .toSorted(byRank);
    return best === undefined ? [] : partOf(source, source.chunks, [best, ...others], first, last);
  });
}

/** Returns the chunks of a text from `first` to `last` as a passage. */
function partOf(
  source: NonNullable<Passage["source"]>,
  chunks: Surroundings["chunks"],
  hits: Passage["hits"],
  first: number,
  last: number,
): Passage {
  const [start, end] = [chunks[first]?.start ?? 0, chunks[last]?.end ?? 0];
  const content = source.text.slice(start - source.start, end - source.start);
  return { hits, start, end, content, source, chunks };
}

/** Takes passages, best first, until the next one does not fit. Pure. */
function fitPassages(passages: readonly Passage[], sides: number, tokensMax: number): readonly Passage[] {
  const fitted: Passage[] = [];
  let left = tokensMax;
  for (const passage of passages) {
    const most = fitted.length === 0 ? left : left - countTokens(SEPARATOR);
    const one =
      narrowed(passage, sides, most) ?? (fitted.length === 0 ? beginningOf(passage, most) : undefined);
    if (one === undefined) break;
    fitted.push(one);
    left = most - countTokens(one.content);
  }
  return fitted;
}

/** Returns a passage, with fewer chunks around its best hit if it has too many tokens. Undefined: the hit alone has too many. */
function narrowed(passage: Passage, sides: number, tokensMax: number): Passage | undefined {
  const { hits, source, chunks } = passage;
  if (countTokens(passage.content) <= tokensMax) return passage;
  if (source === undefined || chunks === undefined) return undefined;
  const [best, ...others] = hits;
  const at = chunks.findIndex(({ ref }) => ref === best.chunk.ref);
  for (let count = sides; count >= 0; count--) {
    const [first, last] = [Math.max(0, at - count), Math.min(chunks.length - 1, at + count)];
    const kept = others.filter(({ chunk }) =>
      within(
        chunks.findIndex(({ ref }) => ref === chunk.ref),
        first,
        last,
      ),
    );
    const part = partOf(source, chunks, [best, ...kept], first, last);
    if (countTokens(part.content) <= tokensMax) return part;
  }
  return undefined;
}

/** Returns the beginning of the best hit, without what it repeats. Undefined: not one character fits. */
function beginningOf({ hits: [best] }: Passage, tokensMax: number): Passage | undefined {
  const { text, before = "", after = "", start, line, locations } = best.chunk;
  const own = text.slice(before.length, text.length - after.length);
  const content = beginningWithin(own, tokensMax);
  if (content === "") return undefined;
  const source = { start, text: own, line, locations: locations ?? [] };
  return { hits: [best], start, end: start + content.length, content, source };
}

/** Returns the longest beginning of a text within `tokensMax` tokens that splits no surrogate pair. */
function beginningWithin(text: string, tokensMax: number): string {
  let [fits, over] = [0, text.length + 1];
  while (over - fits > 1) {
    const middle = (fits + over) >> 1;
    if (countTokens(text.slice(0, middle)) <= tokensMax) fits = middle;
    else over = middle;
  }
  const code = text.charCodeAt(fits - 1);
  return text.slice(0, code >= 0xd800 && code <= 0xdbff ? fits - 1 : fits);
}

function resultWith(passage: Passage, isExpanded: boolean): FoundResult {
  const { hits, start, end, content, source } = passage;
  const [{ chunk, score }] = hits;
  const result = resultOf(chunk, score);
  const additions = isExpanded && { hits: hits.map((hit) => hitWithin(hit, start, end)) };
  if (source === undefined) return { ...result, payload: { ...result.payload, ...additions } };
  const {
    before: _before,
    after: _after,
    lines: _lines,
    pages: _pages,
    locations: _locations,
    ...payload
  } = result.payload;
  return { ...result, payload: { ...payload, content, ...placeOf(passage, source), ...additions } };
}

function placeOf({ start, end }: Passage, source: NonNullable<Passage["source"]>) {
  return positionOf({ ...source, end: source.start + source.text.length }, { start, end });
}

function hitWithin({ chunk, score }: Hit, start: number, end: number) {
  return { id: chunk.id, score, start: Math.max(start, chunk.start), end: Math.min(end, chunk.end) };
}

function within(at: number, first: number, last: number): boolean {
  return first <= at && at <= last;
}

/** Orders hits as the search does. */
function byRank(a: Hit, b: Hit): number {
  return b.score - a.score || (a.chunk.id < b.chunk.id ? -1 : 1);
}
