import { countTokens } from "../../lib/tokens.ts";
import { byBest, mergedPassages, type Passage, type PlacedHit } from "./passages.ts";
import { holds, offsetsOf, textOf, tokensOf, type PieceRange } from "./pieces.ts";
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
  /** Those within the text, best first. */
  readonly hits: Passage["hits"];
  readonly pieces: Passage["pieces"];
  readonly chunk?: Passage["chunk"];
  readonly start: number;
  readonly end: number;
  readonly content: string;
}

/**
 * Takes passages, by their best hits, until the next one does not fit: their texts with separators between them have at most
 * `tokensMax` tokens. Cuts a passage that would take more than its share around its best hit; the hits cut off become passages
 * of their own. Takes at least the beginning of the best hit. Pure.
 */
export function fitPassages(passages: readonly Passage[], tokensMax: number): Fitted[] {
  const fitted: Fitted[] = [];
  let left = tokensMax;
  let queue = byBest(passages);
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    const most = fitted.length === 0 ? left : left - countTokens(SEPARATOR);
    const taken = takePassage(next, most, queue.length === 0 ? most : Math.floor(most * PASSAGE_SHARE));
    const one = taken?.fitted ?? (fitted.length === 0 ? beginningOf(next, most) : undefined);
    if (one === undefined) break;
    fitted.push(one);
    left = most - countTokens(one.content);
    queue = byBest([...queue, ...(taken?.rest ?? [])]);
  }
  return fitted;
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
    fitted: { hits: [best, ...others], pieces, ...offsetsOf(pieces, part), content: textOf(pieces, part) },
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
    const inside = hits.flatMap((hit): PlacedHit[] => {
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
