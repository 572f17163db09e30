/** Orders results of several searches as each of them is ordered: by descending score, ties by id. */
export function byRank(a: Ranked, b: Ranked): number {
  return b.score - a.score || (a.id < b.id ? -1 : 1);
}

interface Ranked {
  readonly id: string;
  readonly score: number;
}
