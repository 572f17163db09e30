import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../../lib/failure.ts";
import { stateUnusable } from "../../lib/folder-lock.ts";
import { isAlive } from "../../lib/process-alive.ts";
import type { StateFolder } from "./state-folder.ts";

/** The name of a folder with a copy of the ledger: `plan-`, the process that plans on it, and a random part. */
const NAME = /^plan-(\d+)-/;

/** Makes an empty folder for a copy of the ledger, for its owner alone. Throws `state_unusable` and `disk_full`. */
export function makePlanCopy({ path }: StateFolder): string {
  try {
    return mkdtempSync(join(path, `plan-${process.pid}-`));
  } catch (error) {
    throw stateUnusable(path, error);
  }
}

/**
 * Removes the copies that processes left when they were killed, and with `own` those of this process, which must then have none in
 * use. Returns what could not be removed, with the reason.
 */
export function removePlanCopies({ path }: StateFolder, { own }: { own: boolean }): readonly string[] {
  const problems: string[] = [];
  for (const name of readdirSync(path)) {
    const pid = Number(NAME.exec(name)?.[1] ?? Number.NaN);
    if (Number.isNaN(pid) || (pid === process.pid ? !own : isAlive(pid))) continue;
    const copy = join(path, name);
    try {
      rmSync(copy, { recursive: true, force: true });
    } catch (error) {
      problems.push(`cannot remove ${copy}, a copy of the ledger: ${messageOf(error)}`);
    }
  }
  return problems;
}
