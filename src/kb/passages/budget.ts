import { countTokens } from "../../lib/tokens.ts";
import { byBest, byRank, mergedPassages, type Passage, type LocatedHit } from "./passages.ts";
import { holds, offsetsOf, textOf, tokensOf, type PieceRange, type Pieces } from "./pieces.ts";
import { grow } from "./section.ts";

/**
 * Largest part of what is left that a passage takes while others follow. On the questions of docs/BENCHMARKS.md, with less the
 * answer is in the first passage less often, and with more it is in fewer answers at all.
 */
export const PASSAGE_SHARE = 0.7;

/** Separates the texts of an answer, and counts as one token. */
export const SEPARATOR = "\n\n";

/** A passage as it is returned. */
export interface Fitted {
  /** The hits within the text, best first. */
  readonly hits: Passage["hits"];
  readonly pieces: Pieces;
  /** Undefined for a single chunk as the search found it, and for a beginning. */
  readonly part?: PieceRange;
  readonly chunk?: Passage["chunk"];
  readonly start: number;
  readonly end: number;
  readonly content: string;
}

export interface FitOptions {
  /** The passage to return first, instead of the one of the best hit; that one follows if both fit. */
  readonly first?: Passage | undefined;
  /** Whether the first result may get text around its passage. */
  readonly mayGrow?: boolean;
}

/**
 * Takes passages, by their best hits, until the next one does not fit: their texts with separators between them have at most
 * `tokensMax` tokens. Cuts a passage that would take more than its share around its best hit; the hits cut off become passages
 * of their own. Takes at least the beginning of the best hit. What is left when the next one does not fit goes to the first one.
 * Pure.
 */
export function fitPassages(
  passages: readonly Passage[],
  tokensMax: number,
  { first, mayGrow = false }: FitOptions = {},
): Fitted[] {
  const fitted: Fitted[] = [];
  let left = tokensMax;
  const ranked = byBest(passages);
  const reserve = reserveFor(ranked, first, tokensMax);
  let queue =
    reserve === 0 || first === undefined ? ranked : [first, ...ranked.filter((one) => one !== first)];
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    const most = fitted.length === 0 ? left : left - countTokens(SEPARATOR);
    const share = Math.min(Math.floor(most * PASSAGE_SHARE), fitted.length === 0 ? most - reserve : most);
    const taken = takePassage(next, most, queue.length === 0 ? most : share);
    const one = taken?.fitted ?? (fitted.length === 0 ? beginningOf(next, most) : undefined);
    if (one === undefined) return mayGrow ? grown(fitted, [next, ...queue], left) : fitted;
    fitted.push(one);
    left = most - countTokens(one.content);
    queue = byBest([...queue, ...(taken?.rest ?? [])]);
  }
  return fitted;
}

/** Returns the tokens to keep for the passage of the best hit behind `first`; 0: that one is first, or only one of both fits. */
function reserveFor([best]: readonly Passage[], first: Passage | undefined, tokensMax: number): number {
  if (best === undefined || first === undefined || first === best) return 0;
  const reserve = leastOf(best) + countTokens(SEPARATOR);
  return leastOf(first) + reserve <= tokensMax ? reserve : 0;
}

/** Returns the tokens of a passage's best hit. */
function leastOf({ hits: [best], pieces, chunk }: Passage): number {
  return chunk === undefined ? tokensOf(pieces, best.own) : countTokens(chunk.text);
}

/** Grows the first result by the text around it, as far as `left` allows. Takes up hits of `rest` that this reaches. */
function grown([first, ...others]: readonly Fitted[], rest: readonly Passage[], left: number): Fitted[] {
  if (first === undefined) return [];
  const { pieces, part, hits } = first;
  if (part === undefined) return [first, ...others];
  const parts = others.flatMap((other) => (other.pieces === pieces ? (other.part ?? []) : []));
  const limits = {
    first: Math.max(0, ...parts.filter(({ last }) => last < part.first).map(({ last }) => last + 1)),
    last: Math.min(
      pieces.begins.length - 1,
      ...parts.filter((other) => other.first > part.last).map((other) => other.first - 1),
    ),
  };
  const near = rest.flatMap((passage) => (passage.pieces === pieces ? passage.hits : []));
  const clues = near.map(({ own }) => own);
  const most = tokensOf(pieces, part) + left - whiteBehind(pieces, part);
  const all = grow(pieces, part, limits, clues, most);
  const [best = hits[0], ...further] = [...hits, ...near.filter(({ own }) => holds(all, own))].toSorted(
    byRank,
  );
  return [fittedOf(pieces, all, [best, ...further]), ...others];
}

/** Returns the tokens of the white space behind a part, which become text if the part grows. */
function whiteBehind({ begins, ends, source }: Pieces, { last }: PieceRange): number {
  const [from, to] = [ends[last] ?? 0, begins[last + 1] ?? 0];
  return countTokens(source.text.slice(from - source.start, Math.max(from, to) - source.start));
}

function fittedOf(pieces: Pieces, part: PieceRange, hits: Passage["hits"]): Fitted {
  return { hits, pieces, part, ...offsetsOf(pieces, part), content: textOf(pieces, part) };
}

interface Taken {
  readonly fitted: Fitted;
  readonly rest: readonly Passage[];
}

/** Takes a passage within its share; its best hit alone within `most`. Undefined: that does not fit. */
function takePassage(passage: Passage, most: number, share: number): Taken | undefined {
  const { hits, pieces, range, chunk } = passage;
  if (chunk !== undefined) {
    const { start, end, text } = chunk;
    const isShort = countTokens(text) <= most;
    return isShort ? { fitted: { hits, pieces, chunk, start, end, content: text }, rest: [] } : undefined;
  }
  const [best] = hits;
  const own = tokensOf(pieces, best.own);
  if (own > most) return undefined;
  const whole = tokensOf(pieces, range) <= share;
  const clues = hits.map((hit) => hit.own);
  const part = whole ? range : grow(pieces, best.own, range, clues, Math.max(own, share));
  const [, ...others] = hits.filter((hit) => holds(part, hit.own));
  return {
    fitted: fittedOf(pieces, part, [best, ...others]),
    rest: remainders(passage, part),
  };
}

/** Returns the hits of a passage outside of a part of it as passages. */
function remainders({ hits, pieces, range }: Passage, part: PieceRange): Passage[] {
  const sides = [
    { first: range.first, last: part.first - 1 },
    { first: part.last + 1, last: range.last },
  ];
  return sides.flatMap((side) => {
    const inside = hits.flatMap((hit): LocatedHit[] => {
      const own = common(hit.own, side);
      const wanted = common(hit.wanted, side);
      const isInside = own !== undefined && wanted !== undefined && !holds(part, hit.own);
      return isInside ? [{ ...hit, own, wanted }] : [];
    });
    return mergedPassages(pieces, inside);
  });
}

function common(a: PieceRange, b: PieceRange): PieceRange | undefined {
  const both = { first: Math.max(a.first, b.first), last: Math.min(a.last, b.last) };
  return both.first <= both.last ? both : undefined;
}

/** Returns the beginning of the best hit: its first pieces, or the beginning of the first one. Undefined: not one character fits. */
function beginningOf({ hits: [best], pieces }: Passage, tokensMax: number): Fitted | undefined {
  const { first } = best.own;
  const none = { first, last: first - 1 };
  let part = none;
  while (part.last < best.own.last && tokensOf(pieces, { first, last: part.last + 1 }) <= tokensMax)
    part = { first, last: part.last + 1 };
  if (part.last < first) {
    const content = beginningWithin(textOf(pieces, { first, last: first }), tokensMax);
    const start = pieces.begins[first] ?? 0;
    return content === "" ? undefined : { hits: [best], pieces, start, end: start + content.length, content };
  }
  return { hits: [best], pieces, ...offsetsOf(pieces, part), content: textOf(pieces, part) };
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
