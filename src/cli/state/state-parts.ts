import { dirname, join } from "node:path";
import type { BackupPart } from "../../backup/make.ts";
import { checkLedger } from "../../sync/ledger/check.ts";
import { ledgerFile } from "../../sync/ledger/ledger.ts";
import { knownTexts } from "../../sync/ledger/restored.ts";
import { trashFolder } from "../../sync/ledger/trash.ts";
import { maintainStore, storeFile } from "./embedded-store.ts";
import type { StateFolder } from "./state-folder.ts";

/** The uploaded files in the folder of the embedded service. */
export function uploadsFolder({ serviceDir }: StateFolder): string {
  return join(serviceDir, "uploads");
}

/**
 * The parts of a backup of a state folder; the ledger first, see `BackupOptions.parts`. `hasUploads`: the uploaded files are in
 * the state folder. `isInDatabase`: the store is in a database, so a store file in the folder is obsolete.
 */
export function backupParts(
  state: StateFolder,
  hasUploads: boolean,
  isInDatabase: boolean,
): readonly BackupPart[] {
  const uploads = uploadsFolder(state);
  const parts: readonly BackupPart[] = [
    {
      database: ledgerFile(state.path),
      folders: [trashFolder(state.path)],
      files: knownTexts,
      // The texts of the trash are copied after the ledger, so they cannot be checked yet.
      check: (copy) =>
        (checkLedger(dirname(copy), { quick: true })?.findings ?? []).filter(
          ({ check }) => check !== "trash",
        ),
    },
    {
      database: storeFile(state),
      // After a crash, a file that the store knows may be in `incoming/` until the next start.
      folders: [uploads, join(uploads, "incoming")],
      files: (copy) =>
        hasUploads
          ? maintainStore(copy)
              .uploads()
              .map(({ token, sha256 }) => ({ name: token, sha256 }))
          : [],
      check: (copy) => maintainStore(copy).check({ quick: true })?.findings ?? [],
    },
  ];
  return isInDatabase ? parts.slice(0, 1) : parts;
}
