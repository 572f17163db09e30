import { rmSync } from "node:fs";
import { ledgerFile } from "../../../src/sync/ledger/ledger.ts";
import { fileTag, readMarker } from "../../../src/sync/plan/marker.ts";
import type { FakeResource } from "../../fakes/knowledge-service.ts";
import type { World } from "../daemon/harness.ts";

/** Removes the ledger. The state folder keeps the id of its installation. */
export function loseLedger(world: World): void {
  for (const part of ["", "-wal", "-shm"]) rmSync(`${ledgerFile(world.stateDir)}${part}`, { force: true });
}

/** Runs a pass. Returns the number of its writes, by operation. */
export async function writesOfPass(
  world: World,
  options?: Parameters<World["sync"]>[0],
): Promise<Record<string, number>> {
  const before = world.service.requests.length;
  await world.sync(options);
  const writes = world.service.requests
    .slice(before)
    .filter(({ operation }) => operation === "create" || operation === "update" || operation === "delete");
  const byOperation = Map.groupBy(writes, ({ operation }) => operation);
  return Object.fromEntries([...byOperation].map(([operation, each]) => [operation, each.length]));
}

/** Runs a pass. Returns why the source is held after it; null: it is not. */
export async function holdOfPass(
  world: World,
  options?: Parameters<World["daemon"]>[0],
): Promise<string | null> {
  const daemon = world.daemon(options);
  try {
    const { status } = await daemon.syncOnce();
    return status.sources[0]?.holdReason ?? null;
  } finally {
    await daemon.close();
  }
}

/** Returns the service's address, for a list that never lags. */
export function promptService({ service: { url, key } }: World): {
  apiUrl: string;
  dbUrl: string;
  pauthkey: string;
  listLagMs: number;
} {
  return { apiUrl: url, dbUrl: url, pauthkey: key, listLagMs: 0 };
}

/** Returns the live resources whose marker names a file. */
export function documentsOf(world: World, path: string): readonly FakeResource[] {
  return world.service.live().filter(({ description }) => {
    const reading = readMarker(description);
    return reading.kind === "whole" && reading.marker.file === fileTag(path);
  });
}
