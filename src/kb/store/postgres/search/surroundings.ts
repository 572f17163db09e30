import { surroundingsOf, type PartRow, type PartsDocument } from "../../search/surroundings.ts";
import type { Surroundings, SurroundingsQuery } from "../../search-index.ts";
import type { Transaction } from "../database/connections.ts";
import type { Target } from "../scopes/target.ts";

/** Reads the texts around chunks. */
export async function readSurroundings(
  tx: Transaction,
  { accountId, range }: Pick<Target, "accountId" | "range">,
  { refs, chunksMax, charsMax }: SurroundingsQuery,
): Promise<Surroundings[]> {
  const wanted = refs.filter((row) => row >= range.first && row <= range.last);
  const starts = await tx.all<{ readonly row: number; readonly resource: number }>(
    "SELECT row, resource FROM chunk WHERE account_id = @accountId AND row = ANY (@wanted::bigint[])",
    { accountId, wanted },
  );
  const found = await tx.all<PartsDocument & { readonly number: number }>(
    `SELECT number, head, first_row AS first, chunks, locations FROM resource
    WHERE account_id = @accountId AND number = ANY (@numbers::bigint[])`,
    { accountId, numbers: [...new Set(starts.map(({ resource }) => resource))] },
  );
  const documents = new Map(found.map((document) => [document.number, document]));
  const parts = new Map<number, PartRow>();
  for (const { row, resource } of starts) {
    const document = documents.get(resource);
    if (document === undefined) continue;
    const last = document.first + document.chunks - 1;
    const around = await tx.all<PartRow>(
      `SELECT row, resource, start, line, headings, text, gap FROM chunk
      WHERE account_id = @accountId AND row BETWEEN @from AND @to ORDER BY row`,
      {
        accountId,
        from: Math.max(document.first, row - chunksMax),
        to: Math.min(last, row + chunksMax),
      },
    );
    const at = around.findIndex((part) => part.row === row);
    const self = around[at];
    if (self === undefined) continue;
    for (const part of [
      self,
      ...within(around.slice(0, at).toReversed(), charsMax),
      ...within(around.slice(at + 1), charsMax),
    ])
      parts.set(part.row, part);
  }
  return surroundingsOf([...parts.values()], documents);
}

/** The first parts up to the one that reaches so many characters. */
function within(parts: readonly PartRow[], charsMax: number): PartRow[] {
  const taken: PartRow[] = [];
  let chars = 0;
  for (const part of parts) {
    if (chars >= charsMax) break;
    taken.push(part);
    chars += part.text.length;
  }
  return taken;
}
