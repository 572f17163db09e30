import { freshRow, type SourceRow } from "../ledger/sources/rows.ts";
import { movedSources } from "../source/moved-sources.ts";
import { previewOf, removalsOf, type PlannedAction } from "../operator/preview.ts";
import type { Parts } from "./parts.ts";
import type { DaemonSources } from "./sources.ts";

/** Plans all sources on rows that are only read. The daemon's sources stay closed, so nothing is written. Returns the rows too. */
export async function previewSources(
  { options, ledger, context }: Parts,
  sources: DaemonSources,
  signal: AbortSignal | undefined,
): Promise<{ readonly planned: readonly PlannedAction[]; readonly rows: readonly SourceRow[] }> {
  const planned: PlannedAction[] = [];
  const rows: SourceRow[] = [];
  const moves = new Map(
    movedSources(ledger, options.sources).map(({ id, path }) => [path, { ...ledger.sources.get(id), path }]),
  );
  for (const [index, source] of options.sources.entries()) {
    const { absolutePath, ownerId, collection } = source;
    // Rows of the ledger have no negative numbers.
    const row =
      moves.get(absolutePath) ??
      ledger.sources.peek(absolutePath, ownerId, collection) ??
      freshRow(-1 - index, absolutePath, ownerId, collection);
    rows.push(row);
    const opened = sources.openOn(row, source, true);
    planned.push(...(await previewOf(ledger, row, opened, { signal, check: context.secretCheck })));
  }
  planned.push(...removalsOf(ledger, new Set(options.sources.map(({ absolutePath }) => absolutePath))));
  return { planned, rows };
}
