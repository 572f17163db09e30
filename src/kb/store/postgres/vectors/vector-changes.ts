import type { RowRange } from "../../../index/rows.ts";
import type { Transaction } from "../database/connections.ts";

/** Length of the change log of a scope. A reader that missed more reads its vectors again. */
const CHANGES_MAX = 2000;
/** Changes after which the log is cut. */
const CUT_EVERY = 100;

/** A scope with its account. */
export interface ScopeOf {
  readonly accountId: string;
  readonly scope: number;
}

/** Logs changes of a scope. The first model that gives it a vector serves it. */
export async function noteRanges(
  tx: Transaction,
  { accountId, scope }: ScopeOf,
  ranges: readonly RowRange[],
  model?: number,
): Promise<void> {
  const noted = await tx.get<{ readonly newest: number }>(
    `WITH noted AS (
      UPDATE scope SET vector_changes = vector_changes + @count::bigint, serving_model = coalesce(serving_model, @model::integer)
      WHERE number = @scope RETURNING vector_changes AS newest),
    added AS (
      INSERT INTO vector_change (account_id, scope, number, first_row, last_row)
      SELECT @accountId, @scope, newest - @count::bigint + nth, first, last
      FROM noted CROSS JOIN unnest(@firsts::bigint[], @lasts::bigint[]) WITH ORDINALITY AS new (first, last, nth))
    SELECT newest FROM noted`,
    {
      accountId,
      scope,
      count: ranges.length,
      model: model ?? null,
      firsts: ranges.map(({ first }) => first),
      lasts: ranges.map(({ last }) => last),
    },
  );
  if (noted === undefined) throw new TypeError("a scope that is locked does not exist");
  const before = noted.newest - ranges.length;
  if (Math.floor(before / CUT_EVERY) === Math.floor(noted.newest / CUT_EVERY)) return;
  await tx.run(
    "DELETE FROM vector_change WHERE account_id = @accountId AND scope = @scope AND number <= @end::bigint",
    { accountId, scope, end: noted.newest - CHANGES_MAX },
  );
}

/** Returns the ranges of consecutive rows, which ascend. */
export function rangesOf(rows: readonly number[]): RowRange[] {
  const ranges: { first: number; last: number }[] = [];
  for (const row of rows) {
    const before = ranges.at(-1);
    if (before?.last === row - 1) before.last = row;
    else ranges.push({ first: row, last: row });
  }
  return ranges;
}
