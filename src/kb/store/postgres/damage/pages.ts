import { isSealed } from "../../../index/seal.ts";
import { pagesListed } from "../../../index/words/run.ts";
import type { Transaction } from "../database/connections.ts";
import { damageIn, type Checked, type CheckedScope } from "./scope.ts";

/** A page is as much work as so many rows of other tables. */
const ROWS_PER_PAGE = 8;

/** Where a check of pages is. */
export interface PagePlace {
  readonly run: number;
  readonly page: number;
}

/** Compares pages of the runs of a scope with their checksums, from a place on. `next` is a page of the same run, or the run after. */
export async function checkPages(
  tx: Transaction,
  of: CheckedScope,
  from: PagePlace,
  stepRows: number,
): Promise<Pick<Checked, "damage"> & { readonly next: PagePlace | undefined }> {
  const { accountId, scope } = of;
  const run = await tx.get<{ number: number; directoryBytes: number }>(
    `SELECT number, octet_length(directory) AS "directoryBytes" FROM word_run
    WHERE account_id = @accountId AND scope = @scope AND number >= @run ORDER BY number LIMIT 1`,
    { accountId, scope, run: from.run },
  );
  if (run === undefined) return { damage: [], next: undefined };
  const first = run.number === from.run ? from.page : 0;
  const total = pagesListed(run.directoryBytes);
  const end = Math.min(total, first + Math.ceil(stepRows / ROWS_PER_PAGE));
  const pages = await tx.all<{ page: number; data: Buffer }>(
    `SELECT page, data FROM word_page WHERE account_id = @accountId AND run = @run AND page >= @first AND page < @end`,
    { accountId, run: run.number, first, end },
  );
  const sound = new Set(pages.filter(({ data }) => isSealed(data)).map(({ page }) => page));
  const found = new Set(pages.map(({ page }) => page));
  const damage = [];
  for (let page = first; page < end; page++) {
    if (sound.has(page)) continue;
    const rule = found.has(page) ? "damagedParts" : "wrongPages";
    damage.push(damageIn(of, rule, `page ${page} of run ${run.number}`, { kind: "run", number: run.number }));
  }
  return { damage, next: end < total ? { run: run.number, page: end } : { run: run.number + 1, page: 0 } };
}
