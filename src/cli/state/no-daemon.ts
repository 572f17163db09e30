import { lockHolder } from "../../lib/folder-lock.ts";
import { isAlive } from "../../lib/process-alive.ts";
import { shortageIn, shortageWords } from "../../lib/full-disk.ts";

/** A daemon that starts needs so much: its ledger has a write-ahead log, which its end has emptied. */
const START_BYTES = 1024 * 1024;

/** The process that has the state folder; it may be starting or ending, and answer nobody. Undefined: there is none. */
export function unreachableProcess(stateDir: string): number | undefined {
  const pid = lockHolder(stateDir, "daemon");
  return pid !== undefined && isAlive(pid) ? pid : undefined;
}

/** `no daemon runs`, and why if the disk of the state folder is full, which ends a daemon. */
export function noDaemonWords(stateDir: string, where = ""): string {
  const pid = unreachableProcess(stateDir);
  if (pid !== undefined) return `kbsync (process ${pid}) starts, stops or syncs once${where}`;
  const shortage = shortageIn(stateDir, START_BYTES);
  return `no daemon runs${where}${shortage === undefined ? "" : ` (${shortageWords(shortage).what})`}`;
}

/** The same, where the ledger alone is read. */
export function unknownChangesWords(stateDir: string): string {
  return `${noDaemonWords(stateDir)}, so newer changes are unknown`;
}
