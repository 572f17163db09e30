import { readlinkSync } from "node:fs";
import { basename } from "node:path";
import { getPriority, setPriority } from "node:os";

/** Niceness that a thread of bulk work adds to that of the process: a third of the processor time where others want it too. */
const NICER_BY = 5;

/**
 * Gives the calling thread a lower priority than the rest of the process. On Linux each thread has its own; elsewhere, where
 * the priority is that of the whole process, nothing changes.
 */
export function lowerThreadPriority(): void {
  if (process.platform !== "linux") return;
  try {
    const thread = Number(basename(readlinkSync("/proc/thread-self")));
    setPriority(thread, Math.min(getPriority() + NICER_BY, 19));
  } catch {
    // No /proc, or a sandbox without setpriority: the thread runs as the others do.
  }
}
