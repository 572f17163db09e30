import { readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";

/** The files of a store that was opened once, in this process. */
let empty: Promise<{ readonly bytes: Buffer; readonly reserveBytes: number }> | undefined;

/**
 * Puts an empty store at a path. To create its tables and to fill its reserve for full disks takes half the time of opening
 * a store; this does it once per process. The reserve has its size, but takes no space.
 */
export async function putEmptyStore(path: string): Promise<void> {
  empty ??= (async () => {
    const store = await openSqliteStore({ path });
    await store.close();
    return { bytes: readFileSync(path), reserveBytes: statSync(`${path}-reserve`).size };
  })();
  const { bytes, reserveBytes } = await empty;
  writeFileSync(path, bytes, { mode: 0o600 });
  writeFileSync(`${path}-reserve`, "", { mode: 0o600 });
  truncateSync(`${path}-reserve`, reserveBytes);
}
