import type { SourceStatus } from "../../wire/daemon-status.ts";
import { freshRow } from "../ledger/sources/rows.ts";
import { movedSources } from "../source/moved-sources.ts";
import { previewOf, removalsOf, type PlannedAction } from "../operator/preview.ts";
import { statusOf, type StatusSource } from "../operator/status.ts";
import type { Parts } from "./parts.ts";
import type { DaemonSources } from "./sources.ts";

/** The plan of a pass, and the status of the sources before it. */
export interface Preview {
  readonly planned: readonly PlannedAction[];
  readonly sources: readonly SourceStatus[];
}

/** Plans all sources on rows that are only read. The daemon's sources stay closed, so nothing is written. */
export async function previewSources(
  { options, ledger, context }: Parts,
  sources: DaemonSources,
  signal: AbortSignal | undefined,
): Promise<Preview> {
  const planned: PlannedAction[] = [];
  const statusSources: StatusSource[] = [];
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
    const opened = sources.openOn(row, source, true);
    planned.push(...(await previewOf(ledger, row, opened, { signal, check: context.secretCheck })));
    statusSources.push({ id: row.id, row, activity: () => opened.activity() });
  }
  planned.push(...removalsOf(ledger, new Set(options.sources.map(({ absolutePath }) => absolutePath))));
  return { planned, sources: statusOf(ledger, statusSources, () => undefined) };
}
