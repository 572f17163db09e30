import type { ScanEntry } from "./model.ts";

/**
 * Some file systems store coarse times: 2 s on FAT, 1 s on ext3, ext4 with small inodes, sshfs and old SMB. The rest
 * allows for clocks that differ slightly.
 */
const STEP_MS = 3000;

/**
 * Returns when a file's times start to distinguish later writes from earlier ones, if it is read at `readAtMs` by the
 * system's clock; undefined if they already do. Within one step of coarse times, a second write of the same size leaves
 * no trace: a file read before the step is over only seems clean (https://git-scm.com/docs/racy-git).
 */
export function racyUntilMs(
  { mtimeMs, ctimeMs }: Pick<ScanEntry, "mtimeMs" | "ctimeMs">,
  readAtMs: number,
): number | undefined {
  // With finer times, whole seconds in both do not happen by chance.
  if (mtimeMs % 1000 !== 0 || ctimeMs % 1000 !== 0) return undefined;
  const untilMs = Math.max(mtimeMs, ctimeMs) + STEP_MS;
  return readAtMs < untilMs ? untilMs : undefined;
}
