/** A chunk with its score. */
export interface Ranked {
  readonly sequence: number;
  readonly score: number;
  /** Number of the part that holds it. */
  readonly part: number;
  readonly ordinal: number;
}

/** The best hits so far: a binary heap with the worst of them on top. */
export interface TopHits {
  /** Whether a hit of this score and sequence would be among them. */
  accepts(score: number, sequence: number): boolean;
  add(hit: Ranked): void;
  /** Returns them, best first, ties by sequence. */
  sorted(): Ranked[];
  /** Returns their scores, to which others can be added. */
  scores(): TopScores;
}

/** The best scores, as many as there are hits wanted. */
export interface TopScores {
  /** The last of them; 0 while there are fewer than wanted. */
  least(): number;
  /** Adds a score above `least`. */
  add(score: number): void;
}

/** Makes an empty list of at most `limit` hits. */
export function makeTopHits(limit: number): TopHits {
  const heap: Ranked[] = [];

  function sink(hit: Ranked): void {
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      let least = heap[child];
      const right = heap[child + 1];
      if (least !== undefined && right !== undefined && byRank(right, least) > 0) {
        child++;
        least = right;
      }
      if (least === undefined || byRank(least, hit) < 0) break;
      heap[at] = least;
      at = child;
    }
    heap[at] = hit;
  }
  function rise(hit: Ranked): void {
    let at = heap.length;
    while (at > 0) {
      const above = (at - 1) >>> 1;
      const parent = heap[above];
      if (parent === undefined || byRank(hit, parent) < 0) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = hit;
  }

  return {
    accepts(score, sequence) {
      const worst = heap[0];
      if (heap.length < limit || worst === undefined) return true;
      return score > worst.score || (score === worst.score && sequence < worst.sequence);
    },
    add(hit) {
      if (heap.length < limit) rise(hit);
      else if (limit > 0) sink(hit);
    },
    sorted: () => heap.toSorted(byRank),
    scores: () =>
      makeTopScores(
        limit,
        heap.map(({ score }) => score),
      ),
  };
}

/** Orders by descending score, ties by sequence. */
function byRank(a: Ranked, b: Ranked): number {
  return b.score - a.score || a.sequence - b.sequence;
}

function makeTopScores(limit: number, known: readonly number[]): TopScores {
  /** A binary heap with the least score on top; slots without a score have 0. */
  const heap = new Float64Array(limit);
  const add = (score: number): void => {
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= limit) break;
      if (child + 1 < limit && (heap[child + 1] ?? 0) < (heap[child] ?? 0)) child++;
      if (score <= (heap[child] ?? 0)) break;
      heap[at] = heap[child] ?? 0;
      at = child;
    }
    heap[at] = score;
  };
  for (const score of known) add(score);
  return { least: () => heap[0] ?? 0, add };
}
