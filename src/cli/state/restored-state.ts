import { existsSync } from "node:fs";
import type { RestrictedKeys } from "../../kb/store/maintenance.ts";
import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";
import type { Finding } from "../../lib/finding.ts";
import { isThere } from "../../lib/is-there.ts";
import { checkLedger } from "../../sync/ledger/check.ts";
import { ledgerFile } from "../../sync/ledger/ledger.ts";
import { distrustRestored, upgradeLedger } from "../../sync/ledger/restored.ts";
import { maintainStore, storeFile } from "./embedded-store.ts";
import { stateFolder } from "./state-folder.ts";

/** Checks an unpacked backup before it replaces the state folder. */
export function checkStage(path: string): readonly Finding[] {
  const store = storeFile(stateFolder(path));
  const ledger = ledgerFile(path);
  // A backup of an older version is upgraded here, where a failure costs nothing.
  if (existsSync(store)) bringUpToDate(() => maintainStore(store).upgrade());
  if (existsSync(ledger)) bringUpToDate(() => upgradeLedger(ledger));
  const findings = [
    ...(checkLedger(path)?.findings ?? []),
    ...(maintainStore(store).check()?.findings ?? []),
  ];
  // Saved texts that were missing when the backup was made are still missing; the hashes of the others were compared.
  return findings.filter(({ check }) => check !== "trash");
}

/** Replaces the advice for a state folder with such a file: the folder is sound, and the backup is to blame. */
function bringUpToDate(upgrade: () => void): void {
  try {
    upgrade();
  } catch (error) {
    const code = codeOf(error);
    if (code !== "store_older" && code !== "ledger_older") throw error;
    throw new KbsyncError(`the backup cannot be restored: ${messageOf(error)}`, {
      code,
      hint: "The state folder was left as it is. Restore the backup with the build that made it.",
      cause: error,
    });
  }
}

/** The state of the keys in a restored store. */
export interface RestoredKeys extends RestrictedKeys {
  /** Why the replaced store does not show what was revoked since the backup; null: it does. */
  readonly problem: string | null;
  /** Keys that are valid in the restored store. */
  readonly valid: number;
}

/**
 * Prepares an unpacked backup before it replaces a state folder: marks its ledger as old, and revokes the keys that were
 * revoked in the present store since. Null: the backup has no store.
 */
export function prepareStage(path: string, stateDir: string, nowMs: number): RestoredKeys | null {
  const ledger = ledgerFile(path);
  if (existsSync(ledger)) distrustRestored(ledger);
  const store = storeFile(stateFolder(path));
  if (!existsSync(store)) return null;
  const carried = carriedKeys(storeFile(stateFolder(stateDir)), store);
  const valid = maintainStore(store)
    .keys()
    .filter(
      ({ revokedAt, expiresAt }) =>
        revokedAt === null && (expiresAt === null || Date.parse(expiresAt) > nowMs),
    );
  return { ...carried, valid: valid.length };
}

/** An unreadable store does not block the restore: replacing a damaged one is what backups are for. */
function carriedKeys(replaced: string, restored: string): Omit<RestoredKeys, "valid"> {
  const none = { revoked: 0, endEarlier: 0, narrowed: 0 };
  let keys;
  try {
    if (!isThere(replaced)) return { problem: "there was no store here before", ...none };
    keys = maintainStore(replaced).keys();
  } catch (error) {
    return { problem: `the store that was there cannot be read (${messageOf(error)})`, ...none };
  }
  return { problem: null, ...maintainStore(restored).restrictKeys(keys) };
}
