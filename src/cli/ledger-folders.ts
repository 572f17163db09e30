import { KbsyncError } from "../lib/failure.ts";
import { openPlaces } from "../sync/places.ts";

/** The folders that a state folder was last used with; none where its ledger cannot be read, which the command itself tells. */
export function ledgerFolders(stateDir: string): readonly string[] {
  try {
    const places = openPlaces(stateDir);
    const folders = places?.sources.map(({ path }) => path) ?? [];
    places?.close();
    return folders;
  } catch (error) {
    if (error instanceof KbsyncError) return [];
    throw error;
  }
}
