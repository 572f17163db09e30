import type { OperatorLedger } from "./offline.ts";

/**
 * Notes in a ledger that no daemon uses that a folder left the configuration, and, if `deletes`, that a person agreed to the
 * deletion of its documents, which the next pass carries out. Returns how many documents it has; undefined: the ledger does not
 * know the folder, or has nothing of it.
 */
export async function removeSource(
  ledger: OperatorLedger,
  folder: string,
  deletes: boolean,
): Promise<number | undefined> {
  const { sources } = ledger;
  await ledger.write(() => {
    const others = sources.active().filter(({ path }) => path !== folder);
    sources.keepActive(others.map(({ id }) => id));
    const row = sources.removed().find(({ path }) => path === folder);
    if (row !== undefined && deletes) sources.approve(row.id);
  });
  return sources.removed().find(({ path }) => path === folder)?.resources;
}
