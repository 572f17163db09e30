import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { flush, writeDurably } from "../lib/durable-file.ts";
import { KbsyncError } from "../lib/failure.ts";

/**
 * What is exchanged in a state folder, in this order: each database goes before the log and the shared memory beside it,
 * which belong to it alone. Keys, locks and sockets stay.
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

/** Folder in a state folder where a restore gets ready. */
function restoreFolder(stateDir: string): string {
  return join(stateDir, "restore");
}

/** Where the restored files wait for the exchange. */
export function stageFolder(stateDir: string): string {
  return join(restoreFolder(stateDir), "new");
}

/** From when this file is there the restore is decided, and whatever happens it is brought to its end. */
function planFile(stateDir: string): string {
  return join(restoreFolder(stateDir), "plan.json");
}

const Plan = z.object({ aside: z.string().regex(/^before-restore-[0-9TZ]+$/), entries: z.array(z.string()) });

/** Whether a restore was decided and not brought to its end. */
export function isExchangePending(stateDir: string): boolean {
  return existsSync(planFile(stateDir));
}

/** Removes what a restore got ready and did not decide on. */
export function dropStage(stateDir: string): void {
  rmSync(restoreFolder(stateDir), { recursive: true, force: true });
}

/** Makes an empty stage. */
export function clearStage(stateDir: string): void {
  dropStage(stateDir);
  mkdirSync(stageFolder(stateDir), { recursive: true, mode: 0o700 });
}

/** Decides: from here on the stage takes the old files' place, and these go into the folder `aside`. */
export function decideExchange(stateDir: string, aside: string): void {
  const stage = stageFolder(stateDir);
  const entries = EXCHANGED.filter((name) => existsSync(join(stage, name)));
  const folder = restoreFolder(stateDir);
  // The names on the stage are durable before the plan is.
  flush(folder);
  writeDurably(planFile(stateDir), `${JSON.stringify({ aside, entries })}\n`);
  flush(folder);
  flush(stateDir);
}

/**
 * Brings a decided exchange to its end, from wherever it was broken off. Only with the locks of the state folder, for
 * nobody may open what lies there meanwhile. Returns the folder with the old files; undefined: there were none. `step` is
 * told before each change and may throw to simulate a crash.
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
      hint: "A newer kbsync began it: finish it with that one.",
      cause: plan.error,
    });
  }
  const { aside, entries } = plan.data;
  const stage = stageFolder(stateDir);
  const move = (from: string, to: string): void => {
    step(to);
    moveDurably(from, to);
  };
  for (const name of EXCHANGED) {
    // What is in the plan and no longer on the stage has been exchanged: what lies there is the new one.
    if (entries.includes(name) && !existsSync(join(stage, name))) continue;
    if (existsSync(join(stateDir, name))) move(join(stateDir, name), join(stateDir, aside, name));
    if (existsSync(join(stage, name))) move(join(stage, name), join(stateDir, name));
  }
  step("exchanged");
  rmSync(stage, { recursive: true, force: true });
  step("stage removed");
  rmSync(planFile(stateDir));
  step("plan removed");
  dropStage(stateDir);
  return existsSync(join(stateDir, aside)) ? join(stateDir, aside) : undefined;
}

function moveDurably(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  renameSync(from, to);
  // A power cut must not lose both names of what was put aside.
  flush(dirname(to));
  flush(dirname(from));
}
