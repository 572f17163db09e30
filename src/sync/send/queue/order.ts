/**
 * Which job goes next. Jobs stand in ranks: what happened in the last minutes comes before the files of a first sync,
 * texts before uploads that the service has to read. Pure.
 */

/** What a job sends. The service needs minutes for a scanned document and an instant for a text. */
export type JobKind = "text" | "document" | "delete";

/** The first rank that has work goes first. */
export type Rank = 0 | 1 | 2 | 3;

export const RECENT: Rank = 0;
const BACKLOG_RANKS = { text: 1, document: 2, delete: 3 } as const;

/** Returns the rank of a job. In the backlog, deletes come last: a file that was renamed and edited is never without a resource. */
export function rankOf(kind: JobKind, isRecent: boolean): Rank {
  return isRecent ? RECENT : BACKLOG_RANKS[kind];
}

/**
 * Changes of one owner and kind that count as recent. A person makes fewer in some minutes. When more arrive, such as
 * those of another branch, the oldest become part of the backlog, and so do more than this at once: the next save does
 * not wait for them.
 */
export const RECENT_MAX = 100;

/**
 * Each rank waits for at most so many jobs, times its number: nothing starves. More than can be recent and prepared, so
 * that no recent change stands behind the backlog.
 */
export const TURNS = 4 * RECENT_MAX;

/** A line whose first job may go now. */
export interface Contender {
  readonly rank: Rank;
  /** Jobs of its owner and rank that are under way. Owners of one rank share evenly. */
  readonly load: number;
  /** Position of its first job: smaller arrived earlier. */
  readonly seq: number;
}

/** When those have their turn that were passed over, as numbers of served jobs. */
export interface Turns {
  readonly byRank: ReadonlyMap<Rank, number>;
  /** The same when a job of the backlog was served last. It never has a turn before recent changes because of others. */
  readonly backlog: number;
}

export const FIRST_TURNS: Turns = { byRank: new Map(), backlog: 0 };

/**
 * Returns the line that goes next, after `served` jobs, its turn in comparison with others, and the turns from then on;
 * undefined: there is none.
 */
export function chooseNext<C extends Contender>(
  contenders: readonly C[],
  turns: Turns,
  served: number,
): { readonly next: C; readonly turn: number; readonly turns: Turns } | undefined {
  const dueOf = ({ rank }: Contender): number => turns.byRank.get(rank) ?? served + TURNS * rank;
  const turnOf = (each: Contender): number =>
    each.rank === RECENT ? served : Math.max(dueOf(each), turns.backlog + TURNS);
  const [next] = contenders.toSorted(
    (a, b) => turnOf(a) - turnOf(b) || dueOf(a) - dueOf(b) || a.load - b.load || a.seq - b.seq,
  );
  if (next === undefined) return undefined;
  const others = contenders.filter(({ rank }) => rank !== next.rank && rank !== RECENT);
  const byRank = new Map(others.map((each) => [each.rank, dueOf(each)]));
  const backlog = next.rank === RECENT ? turns.backlog : served;
  return { next, turn: turnOf(next), turns: { byRank, backlog } };
}
