import { countTokens, TOKENIZER } from "../../lib/tokens.ts";
import type { FoundResult } from "../../wire/answers.ts";
import {
  ANSWER_TOKENS_DEFAULT,
  DUPLICATE_DOCUMENTS_MAX,
  type Budget,
  type ContextFields,
  type Expand,
} from "../../wire/context.ts";
import type { SearchBody } from "../../wire/search.ts";
import { positionOf } from "../search/position.ts";
import { resultOf, type SearchOutcome } from "../search/search.ts";
import type { FoundChunk, Index, Scope } from "../store/search-index.ts";
import { fitPassages, PASSAGE_SHARE, SEPARATOR, type Fitted } from "./budget.ts";
import { firstPassage } from "./first-passage.ts";
import { firstOfEach } from "../../lib/near-duplicates.ts";
import { expandHits, passageOf, type Hit, type Passage } from "./passages.ts";

/** The facts that a search returns with its hits. */
export interface ContextRequest {
  readonly query: string;
  readonly expand: Expand | undefined;
  /** Undefined: no limit, or the default if there is `expand`. */
  readonly maxTokens: number | undefined;
  readonly maxPerDocument: number | undefined;
  readonly collapse: boolean;
  /** Hits to skip. */
  readonly offset: number;
  /** Hits to return, at most. */
  readonly topK: number;
}

export interface ContextOutcome extends SearchOutcome {
  readonly budget: Budget;
  /** The results as chunks: the best hit of each, with the text around it. */
  readonly passages: readonly FoundChunk[];
}

/** Characters read on each side of a hit: a section of that length has some 2,000 tokens. */
const SECTION_CHARS = 8000;
/** Characters read on each side of a hit per token of the answer: prose has four, and more text does not fit. */
const CHARS_PER_TOKEN = 5;
/** Chunks read on each side of a hit for its section: more than that many characters have by default. */
const SECTION_CHUNKS = 32;
const NEIGHBOURS_CHARS = 16_000;
/** A passage that is moved before another one gets a score that is higher by this. */
const STEP = 1e-9;

/** Returns what a body asks for in addition to its hits; undefined: nothing. */
export function contextOf(
  body: Pick<SearchBody, keyof typeof ContextFields | "query" | "top_k">,
): ContextRequest | undefined {
  const { expand, max_tokens: maxTokens, max_per_document: maxPerDocument, collapse, offset } = body;
  const given = [expand, maxTokens, maxPerDocument, collapse, offset];
  if (given.every((one) => one === undefined)) return undefined;
  return {
    query: body.query,
    expand,
    maxTokens: maxTokens ?? (expand === undefined ? undefined : ANSWER_TOKENS_DEFAULT),
    maxPerDocument,
    collapse: collapse ?? false,
    offset: offset ?? 0,
    topK: body.top_k,
  };
}

/**
 * Returns the hits of a search as asked for: one of several with nearly the same text, so many of a document, with the text
 * around them, within a number of tokens. `outcome` has the best hits, as many as a search may return: what is returned of a hit
 * does not depend on `topK` before hits are expanded. Reads a bounded number of chunks.
 */
export async function withContext(
  index: Pick<Index, "surroundings">,
  scope: Scope,
  outcome: SearchOutcome,
  request: ContextRequest,
): Promise<ContextOutcome> {
  const { expand, maxTokens, offset, topK } = request;
  const all = limited(
    request.collapse ? collapsed(hitsOf(outcome)) : hitsOf(outcome),
    request.maxPerDocument,
  );
  const hits = all.slice(offset, offset + topK);
  const passages =
    expand === undefined || maxTokens === undefined
      ? hits.map(passageOf)
      : await expanded(index, scope, hits, outcome.chunks, expand, maxTokens);
  const fitted = fitPassages(passages, maxTokens ?? Infinity, {
    first: expand === undefined ? undefined : firstPassage(passages, request.query),
    mayGrow: expand === "section",
  });
  const text = fitted.map(({ content }) => content).join(SEPARATOR);
  const covered = new Set(fitted.flatMap((each) => each.hits.map(({ chunk }) => chunk.ref)));
  const missing = hits.findIndex(({ chunk }) => !covered.has(chunk.ref));
  // Advances in any case.
  const next = offset + (missing === -1 ? hits.length : Math.max(1, missing));
  return {
    ...outcome,
    text,
    results: fitted.map((each, at) => resultWith(each, scoreOf(each, fitted[at + 1]), expand !== undefined)),
    chunks: fitted.map((each) => each.hits[0].chunk),
    passages: fitted.map(chunkWith),
    budget: {
      tokenizer: TOKENIZER,
      tokens: countTokens(text),
      maxTokens: maxTokens ?? null,
      nextOffset: next < all.length ? next : null,
    },
  };
}

function hitsOf({ results, chunks }: SearchOutcome): Hit[] {
  return chunks.map((chunk, at) => ({ chunk, score: results[at]?.score ?? 0, duplicates: [] }));
}

/** Returns the best of each group of hits with nearly the same text. Depends on no hit behind it but for the duplicates. */
function collapsed(hits: readonly Hit[]): Hit[] {
  const firsts = firstOfEach(hits.map(({ chunk }) => chunk.text));
  return hits.flatMap((hit, at) => {
    if (firsts[at] !== at) return [];
    const duplicates = hits.filter((_, other) => other !== at && firsts[other] === at);
    return { ...hit, duplicates: duplicates.map(({ chunk }) => chunk) };
  });
}

/** Returns the first hits of each document, so many. */
function limited(hits: readonly Hit[], maxPerDocument = Infinity): Hit[] {
  const counts = new Map<string, number>();
  return hits.filter(({ chunk: { resourceId } }) => {
    const count = (counts.get(resourceId) ?? 0) + 1;
    counts.set(resourceId, count);
    return count <= maxPerDocument;
  });
}

async function expanded(
  index: Pick<Index, "surroundings">,
  scope: Scope,
  hits: readonly Hit[],
  clues: readonly FoundChunk[],
  expand: Expand,
  maxTokens: number,
): Promise<Passage[]> {
  const sides = expand === "neighbours" ? 1 : expand;
  const surroundings = await index.surroundings({
    scope,
    refs: hits.map(({ chunk }) => chunk.ref),
    chunksMax: sides === "section" ? SECTION_CHUNKS : sides,
    charsMax: sides === "section" ? Math.min(SECTION_CHARS, maxTokens * CHARS_PER_TOKEN) : NEIGHBOURS_CHARS,
  });
  const share = hits.length === 1 ? 1 : PASSAGE_SHARE;
  return expandHits(hits, clues, surroundings, expand, Math.floor(maxTokens * share));
}

/** Returns the score of a result before another: that of its best hit, or a hair more than the next one's if that is larger. */
function scoreOf({ hits: [best] }: Fitted, next: Fitted | undefined): number {
  const behind = next?.hits[0].score ?? 0;
  return best.score < behind ? Math.min(1, behind * (1 + STEP)) : best.score;
}

function resultWith(
  { hits, pieces, chunk, start, end, content }: Fitted,
  score: number,
  isExpanded: boolean,
): FoundResult {
  const [best] = hits;
  const result = resultOf(best.chunk, score);
  const duplicates = hits.flatMap((hit) => hit.duplicates);
  const documents = new Map(duplicates.map(({ resourceId, title }) => [resourceId, { resourceId, title }]));
  documents.delete(best.chunk.resourceId);
  const additions = {
    ...(isExpanded && { hits: hits.map((hit) => hitWithin(hit, start, end)) }),
    ...(duplicates.length > 0 && { duplicates: duplicates.length }),
    ...(documents.size > 0 && {
      duplicateDocuments: [...documents.values()].slice(0, DUPLICATE_DOCUMENTS_MAX),
    }),
  };
  if (chunk !== undefined) return { ...result, payload: { ...result.payload, ...additions } };
  const {
    before: _before,
    after: _after,
    lines: _lines,
    pages: _pages,
    locations: _locations,
    ...payload
  } = result.payload;
  const { source } = pieces;
  const whole = { ...source, end: source.start + source.text.length };
  return { ...result, payload: { ...payload, content, ...positionOf(whole, { start, end }), ...additions } };
}

/** Returns the best hit with the whole text of the result. */
function chunkWith({ hits, pieces, chunk, start, end, content }: Fitted): FoundChunk {
  const { before: _before, after: _after, ...best } = hits[0].chunk;
  if (chunk !== undefined) return chunk;
  const { source } = pieces;
  const { lines } = positionOf({ ...source, end: source.start + source.text.length }, { start, end });
  return { ...best, text: content, start, end, line: lines?.first, locations: source.locations };
}

function hitWithin({ chunk, score }: Hit, start: number, end: number) {
  return { id: chunk.id, score, start: Math.max(start, chunk.start), end: Math.min(end, chunk.end) };
}
