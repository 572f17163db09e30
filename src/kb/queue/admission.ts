/**
 * Decides beside which others a job may start. When a process crashes, all jobs that it worked on are suspects, and one of them at
 * most is to blame. So suspects start again one at a time, and only a crash of such a run counts against a job. Jobs that were not
 * being worked on at the crash run beside them. The last run of a job has none of its own account beside it, so that no
 * account's job is given up for another one of its own; other accounts do not wait for it.
 */

/** Crashes, after the first, that a job is started again after. */
export const CRASHES_MAX = 3;

/** When a job may start: now, when another one has ended, or then and before all others of its account. */
export type Admission = "now" | "later" | "next";

/** A job as far as that goes. */
export interface Suspect {
  readonly accountId: string;
  /** How often a process ended while it worked on the job, before this run. */
  readonly crashes: number;
}

/** Decides when a job may start beside the running ones. To be asked of the oldest first. Pure. */
export function admit({ accountId, crashes }: Suspect, running: readonly Suspect[]): Admission {
  const own = running.filter((each) => each.accountId === accountId);
  if (own.some(isLast)) return "next";
  const isBesideAnother = crashes > 0 && running.some((each) => each.crashes > 0);
  if (isLast({ crashes })) return isBesideAnother || own.length > 0 ? "next" : "now";
  return isBesideAnother ? "later" : "now";
}

/** Whether a job has crashed its process in each of its runs. */
export function isSpent(crashes: number): boolean {
  return crashes > CRASHES_MAX;
}

function isLast({ crashes }: Pick<Suspect, "crashes">): boolean {
  return crashes >= CRASHES_MAX;
}
