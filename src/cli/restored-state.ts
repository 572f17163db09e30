import { existsSync } from "node:fs";
import { checkStore } from "../kb/store/sqlite/check.ts";
import { upgradeStore } from "../kb/store/sqlite/known-uploads.ts";
import type { Finding } from "../lib/finding.ts";
import { checkLedger } from "../sync/ledger/check.ts";
import { ledgerFile } from "../sync/ledger/ledger.ts";
import { distrustRestored, upgradeLedger } from "../sync/ledger/restored.ts";
import { stateFolder } from "./state-folder.ts";
import { storeFile } from "./state-parts.ts";

/** Checks what a backup gave, where it waits to be exchanged for what is there. */
export function checkStage(path: string): readonly Finding[] {
  const store = storeFile(stateFolder(path));
  const ledger = ledgerFile(path);
  // A backup of an older version is brought up to date here, where it costs nothing if that fails.
  if (existsSync(store)) upgradeStore(store);
  if (existsSync(ledger)) upgradeLedger(ledger);
  const findings = [...(checkLedger(path)?.findings ?? []), ...(checkStore(store)?.findings ?? [])];
  // Kept texts that were missing when the backup was made are missing still; the hashes of the others were compared.
  return findings.filter(({ check }) => check !== "trash");
}

/** Readies what a backup gave: the ledger is to know that it is an old one. */
export function prepareStage(path: string): void {
  const ledger = ledgerFile(path);
  if (existsSync(ledger)) distrustRestored(ledger);
}
