import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { flush, writeDurably } from "../lib/durable-file.ts";
import { KbsyncError } from "../lib/failure.ts";

/**
 * The entries that a restore exchanges, in this order: each database before its log and shared memory. Keys, locks and
 * sockets stay.
 */
export const EXCHANGED: readonly string[] = [
  "ledger.db",
  "ledger.db-wal",
  "ledger.db-shm",
  "ledger.mark",
  "trash",
  "service/kb.sqlite",
  "service/kb.sqlite-wal",
  "service/kb.sqlite-shm",
  "service/uploads",
];

/** Working folder of a restore. */
function restoreFolder(stateDir: string): string {
  return join(stateDir, "restore");
}

/** Folder of the restored files before the exchange. */
export function stageFolder(stateDir: string): string {
  return join(restoreFolder(stateDir), "new");
}

/** Commit point: once this file exists, the restore is decided and will be completed. */
function planFile(stateDir: string): string {
  return join(restoreFolder(stateDir), "plan.json");
}

const Plan = z.object({
  /** The folder for the old files. */
  aside: z.string().regex(/^before-restore-[0-9TZ]+$/),
  entries: z.array(z.string()),
});

/** Whether a decided restore is incomplete. */
export function isExchangePending(stateDir: string): boolean {
  return existsSync(planFile(stateDir));
}

/** Removes the files of an undecided restore. */
export function dropStage(stateDir: string): void {
  rmSync(restoreFolder(stateDir), { recursive: true, force: true });
}

/** Creates an empty stage. */
export function clearStage(stateDir: string): void {
  dropStage(stateDir);
  mkdirSync(stageFolder(stateDir), { recursive: true, mode: 0o700 });
}

/** Commits the restore: from here on the stage replaces the old files, which move to the folder `previous`. */
export function decideExchange(stateDir: string, previous: string): void {
  const stage = stageFolder(stateDir);
  const entries = EXCHANGED.filter((name) => existsSync(join(stage, name)));
  const folder = restoreFolder(stateDir);
  // The names on the stage are durable before the plan is.
  flush(folder);
  writeDurably(planFile(stateDir), `${JSON.stringify({ aside: previous, entries })}\n`);
  flush(folder);
  flush(stateDir);
}

/**
 * Completes a decided exchange from any interruption. Requires the locks of the state folder: nothing may open its files
 * meanwhile. Returns the folder with the old files, or undefined if there were none. Calls `step` before each change; it
 * may throw to simulate a crash.
 */
export function finishExchange(
  stateDir: string,
  step: (name: string) => void = () => undefined,
): string | undefined {
  const plan = Plan.safeParse(JSON.parse(readFileSync(planFile(stateDir), "utf8")));
  if (!plan.success) {
    throw new KbsyncError(`the restore in ${restoreFolder(stateDir)} is not understood`, {
      code: "restore_unfinished",
      subject: restoreFolder(stateDir),
      hint: "A newer kbsync started it: finish it with that version.",
      cause: plan.error,
    });
  }
  const { aside: previous, entries } = plan.data;
  const stage = stageFolder(stateDir);
  const move = (from: string, to: string): void => {
    step(to);
    moveDurably(from, to);
  };
  for (const name of EXCHANGED) {
    // A planned entry that has left the stage is already exchanged.
    if (entries.includes(name) && !existsSync(join(stage, name))) continue;
    if (existsSync(join(stateDir, name))) move(join(stateDir, name), join(stateDir, previous, name));
    if (existsSync(join(stage, name))) move(join(stage, name), join(stateDir, name));
  }
  step("exchanged");
  rmSync(stage, { recursive: true, force: true });
  step("stage removed");
  rmSync(planFile(stateDir));
  step("plan removed");
  dropStage(stateDir);
  return existsSync(join(stateDir, previous)) ? join(stateDir, previous) : undefined;
}

function moveDurably(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  renameSync(from, to);
  // A power cut must not lose both names of a moved file.
  flush(dirname(to));
  flush(dirname(from));
}
