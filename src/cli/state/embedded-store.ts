import { existsSync } from "node:fs";
import { join } from "node:path";
import { KbsyncError } from "../../lib/failure.ts";
import type { MoveSource, MoveTarget } from "../../kb/store/move/side.ts";
import type { StoreMaintenance } from "../../kb/store/maintenance.ts";
import { sqliteMaintenance } from "../../kb/store/sqlite/maintenance.ts";
import { openSqliteSource, openSqliteTarget, unfinishedFile } from "../../kb/store/sqlite/move-side.ts";
import { openSqliteStore, type SqliteStoreOptions } from "../../kb/store/sqlite/open.ts";
import type { Store } from "../../kb/store/store.ts";
import type { StateFolder } from "./state-folder.ts";

// Only this file of the program names the store file of the embedded service; `compose/store.ts` does so for a database.

/** Options of the store in a file. */
export type StoreFileOptions = Omit<SqliteStoreOptions, "path">;

/** The store's database in the folder of the embedded service. */
export function storeFile({ serviceDir }: Pick<StateFolder, "serviceDir">): string {
  return join(serviceDir, "kb.sqlite");
}

/** Opens the store of the embedded service. Throws as `openSqliteStore`, and `store_unfinished` if a copy to it has not ended. */
export async function openStore(state: StateFolder, options: StoreFileOptions = {}): Promise<Store> {
  const unfinished = unfinishedFile(storeFile(state));
  if (existsSync(unfinished)) {
    throw new KbsyncError(`the state folder ${state.path} has an unfinished copy of a store`, {
      code: "store_unfinished",
      subject: state.path,
      hint: `To finish it, run \`kbsync move --from\` again. To drop it, remove ${unfinished}.`,
    });
  }
  return openSqliteStore({ ...options, path: storeFile(state) });
}

/** Opens the store of the embedded service to be copied. Throws as `openSqliteSource`. */
export function openStoreSource(state: StateFolder): MoveSource {
  return openSqliteSource(storeFile(state));
}

/** Opens the store of the embedded service as the copy of another one. Throws as `openSqliteTarget`. */
export function openStoreTarget(state: StateFolder): MoveTarget {
  return openSqliteTarget(storeFile(state));
}

/** The maintenance of a store file: that of a state folder, or a copy. */
export function maintainStore(path: string): StoreMaintenance {
  return sqliteMaintenance(path);
}
