/**
 * Decides which jobs may run at the same time. When a process crashes, every job that it worked on is a suspect, and at most one
 * of them caused the crash. Suspects therefore restart one at a time, and only a crash of such a run counts against a job. Jobs
 * that the process did not work on run concurrently with them. During the last run of a job no other job of its account runs, so
 * that no job is given up because of another one of its account; other accounts do not wait for it.
 */

/** Crashes after which a job still restarts; one more, and it is given up. The first crash may be another job's doing. */
export const CRASHES_MAX = 3;

/** When a job may start: now; after another job ends; or after another job ends and before all others of its account. */
export type Admission = "now" | "later" | "next";

/** The facts of a job that admission needs. */
export interface Suspect {
  readonly accountId: string;
  /** How often a process ended while it worked on the job, before this run. */
  readonly crashes: number;
}

/** Decides when a job may start while others run. Callers ask for the oldest job first. Pure. */
export function admit({ accountId, crashes }: Suspect, running: readonly Suspect[]): Admission {
  const own = running.filter((each) => each.accountId === accountId);
  if (own.some(isLast)) return "next";
  const anotherSuspectRuns = crashes > 0 && running.some((each) => each.crashes > 0);
  if (isLast({ crashes })) return anotherSuspectRuns || own.length > 0 ? "next" : "now";
  return anotherSuspectRuns ? "later" : "now";
}

/** Reports whether a job has used up its restarts: its process crashed in each of its runs. */
export function isExhausted(crashes: number): boolean {
  return crashes > CRASHES_MAX;
}

function isLast({ crashes }: Pick<Suspect, "crashes">): boolean {
  return crashes >= CRASHES_MAX;
}
