/**
 * Decides beside which others a job may begin. When the process ends by no will of its own, all jobs under way have begun and
 * have not ended, and one of them at most is to blame. So after a crash these begin again one at a time, and only a crash of
 * such a run counts against a job. Jobs that were not under way at the crash run beside them. The last run of a job has none
 * of its own account beside it, so that no account's documents are given up for another document of its own; other accounts
 * are not held up for it.
 */

/** Ends of the process, after the first, that a job is begun again after. */
export const ENDS_MAX = 3;

/** When a job may begin: now, when another one has ended, or then and before all others of its account. */
export type Admission = "now" | "later" | "next";

/** A job as far as that goes. */
export interface Suspect {
  readonly accountId: string;
  /** How often it had begun and not ended, before this process began it. */
  readonly begun: number;
}

/** Decides when a job may begin beside those `underWay`. To be asked of the oldest first. */
export function admit({ accountId, begun }: Suspect, underWay: readonly Suspect[]): Admission {
  const own = underWay.filter((each) => each.accountId === accountId);
  if (own.some(isLast)) return "next";
  const isBesideAnother = begun > 0 && underWay.some((each) => each.begun > 0);
  if (isLast({ begun })) return isBesideAnother || own.length > 0 ? "next" : "now";
  return isBesideAnother ? "later" : "now";
}

/** Whether a job begun so often, this time included, has taken the process with it each time. */
export function isSpent(begun: number): boolean {
  return begun > ENDS_MAX + 1;
}

function isLast({ begun }: Pick<Suspect, "begun">): boolean {
  return begun >= ENDS_MAX;
}
