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
 * The backlog has a turn after so many recent changes in a row, and so has each of its ranks after so many jobs of
 * earlier ones: nothing starves. More than can wait as recent, so that none of those stands behind the backlog.
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

/**
 * By rank, how many jobs of earlier ranks of the backlog have gone in a row while it waited. The first is the number of
 * recent changes that have gone in a row while backlog waited.
 */
export type PassedOver = readonly [number, number, number, number];

export const NONE_PASSED_OVER: PassedOver = [0, 0, 0, 0];

/** Returns the line that goes next, and who was passed over from then on; undefined: there is none. */
export function chooseNext<C extends Contender>(
  contenders: readonly C[],
  passedOver: PassedOver,
): { readonly next: C; readonly passedOver: PassedOver } | undefined {
  const backlog = contenders.filter(({ rank }) => rank !== RECENT);
  const isTurnOfBacklog = backlog.length > 0 && passedOver[RECENT] >= TURNS;
  const recent = isTurnOfBacklog ? [] : contenders.filter(({ rank }) => rank === RECENT);
  const isOverdue = ({ rank }: C): boolean => rank !== RECENT && passedOver[rank] >= TURNS;
  const isBefore = (a: C, b: C): boolean => {
    if (a.rank === b.rank) return a.load === b.load ? a.seq < b.seq : a.load < b.load;
    return isOverdue(a) === isOverdue(b) ? a.rank < b.rank : isOverdue(a);
  };
  let next: C | undefined;
  for (const each of recent.length > 0 ? recent : backlog)
    if (next === undefined || isBefore(each, next)) next = each;
  if (next === undefined) return undefined;
  const counts: [number, number, number, number] = [...passedOver];
  const { rank } = next;
  if (rank === RECENT) {
    if (backlog.length > 0) counts[RECENT] += 1;
  } else {
    counts[RECENT] = 0;
    counts[rank] = 0;
    for (const later of new Set(backlog.map((each) => each.rank))) if (later > rank) counts[later] += 1;
  }
  return { next, passedOver: counts };
}
