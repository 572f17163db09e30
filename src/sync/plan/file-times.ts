import type { ScanEntry } from "./model.ts";

/**
 * Some file systems store times in steps: 2 s on FAT, 1 s on ext3, ext4 with small inodes, sshfs and old SMB. The rest is
 * for clocks that are not quite together.
 */
const STEP_MS = 3000;

/**
 * When the times of a file tell every later write from those before, if it is read at `readAtMs` by the system's clock;
 * undefined: they do already. Within one step of coarse times a second write of the same size leaves no trace, so that a
 * file read before the step is over only seems clean (https://git-scm.com/docs/racy-git).
 */
export function racyUntilMs(
  { mtimeMs, ctimeMs }: Pick<ScanEntry, "mtimeMs" | "ctimeMs">,
  readAtMs: number,
): number | undefined {
  // Whole seconds in both are no accident of finer times.
  if (mtimeMs % 1000 !== 0 || ctimeMs % 1000 !== 0) return undefined;
  const untilMs = Math.max(mtimeMs, ctimeMs) + STEP_MS;
  return readAtMs < untilMs ? untilMs : undefined;
}
