/**
 * Beside what a job may be begun. When the process ends by no will of its own, all jobs under way have been begun and have not
 * ended, and one of them at most is to blame: so they are begun again one at a time, and only those runs tell something of a
 * job. Beside the first of these runs others go on that were not under way; a job's last run has nothing at all beside it, so
 * that none is ever given up for what another did.
 */

/** Ends of the process, after the first, that a job is begun again after. */
export const ENDS_MAX = 3;

/** When a job may be begun: now, when another has ended, before which others may be, or before all others. */
export type Admission = "now" | "later" | "next";

/**
 * Says so of a job that was begun, and not ended, so often before; `underWay` are the same figures of those that were begun by
 * this process. To be asked of the oldest first.
 */
export function admit(begunBefore: number, underWay: readonly number[]): Admission {
  if (underWay.some(isLast)) return "next";
  if (isLast(begunBefore)) return underWay.length === 0 ? "now" : "next";
  return begunBefore > 0 && underWay.some((each) => each > 0) ? "later" : "now";
}

/** Whether a job begun so often, this time included, has taken the process with it each time. */
export function isSpent(begun: number): boolean {
  return begun > ENDS_MAX + 1;
}

function isLast(begunBefore: number): boolean {
  return begunBefore >= ENDS_MAX;
}
