import { holds, joinRanges, tokensOf, type PieceRange, type Pieces } from "./pieces.ts";

/** A shorter section grows to this many tokens: few answers stand in one paragraph, and most within a page. */
const SECTION_TOKENS_MIN = 500;

/**
 * Returns the section around a hit, at most `tokensMax` tokens or the hit alone: from the heading above it to the next one. A
 * section below `SECTION_TOKENS_MIN` grows to the largest enclosing section within that, then by what is around it. A longer
 * one than `tokensMax` is cut around the hit. Growing takes `clues`, other hits of the text, best first, before other text.
 * Pure.
 */
export function sectionAround(
  pieces: Pieces,
  hit: PieceRange,
  clues: readonly PieceRange[],
  tokensMax: number,
): PieceRange {
  const [inner, ...outer] = sectionsAround(pieces, hit);
  if (tokensOf(pieces, inner) > tokensMax) return grow(pieces, hit, inner, clues, tokensMax);
  const few = Math.min(tokensMax, SECTION_TOKENS_MIN);
  const section = outer.findLast((each) => tokensOf(pieces, each) <= few) ?? inner;
  return grow(pieces, section, allOf(pieces), clues, few);
}

/**
 * Grows a range within limits as far as `tokensMax` allows: first over the clues, in their order, then alternately by a piece on
 * each side. A range that has more tokens stays as it is. Pure.
 */
export function grow(
  pieces: Pieces,
  range: PieceRange,
  limits: PieceRange,
  clues: readonly PieceRange[],
  tokensMax: number,
): PieceRange {
  let grown = range;
  const take = (next: PieceRange): boolean => {
    const fits = holds(limits, next) && tokensOf(pieces, next) <= tokensMax;
    if (fits) grown = next;
    return fits;
  };
  for (const clue of clues) take(joinRanges(grown, clue));
  for (let [below, above] = [true, true]; below || above;) {
    below &&= take({ ...grown, last: grown.last + 1 });
    above &&= take({ ...grown, first: grown.first - 1 });
  }
  return grown;
}

function allOf({ begins }: Pieces): PieceRange {
  return { first: 0, last: begins.length - 1 };
}

/** Returns the sections that hold a hit, innermost first. The innermost ends at the next heading of any level. */
function sectionsAround(pieces: Pieces, hit: PieceRange): [PieceRange, ...PieceRange[]] {
  const { headings, isBegin } = pieces;
  const all = allOf(pieces);
  const above = headings.findLastIndex(({ piece }) => piece <= hit.first);
  const next = headings.find(({ piece }) => piece > hit.last);
  const inner = { first: headings[above]?.piece ?? 0, last: (next?.piece ?? all.last + 1) - 1 };
  const sections: [PieceRange, ...PieceRange[]] = [inner];
  let level = Infinity;
  for (let at = above; at >= 0; at--) {
    const heading = headings[at];
    if (heading === undefined || heading.level >= level) continue;
    ({ level } = heading);
    const end = headings.find((each) => each.piece > hit.last && each.level <= heading.level);
    sections.push({ first: heading.piece, last: (end?.piece ?? all.last + 1) - 1 });
  }
  if (isBegin) sections.push(all);
  return sections;
}
