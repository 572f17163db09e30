import { join } from "node:path";
import type { StoreMaintenance } from "../../kb/store/maintenance.ts";
import { sqliteMaintenance } from "../../kb/store/sqlite/maintenance.ts";
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

/** Opens the store of the embedded service. Throws as `openSqliteStore`. */
export async function openStore(state: StateFolder, options: StoreFileOptions = {}): Promise<Store> {
  return openSqliteStore({ ...options, path: storeFile(state) });
}

/** The maintenance of a store file: that of a state folder, or a copy. */
export function maintainStore(path: string): StoreMaintenance {
  return sqliteMaintenance(path);
}
