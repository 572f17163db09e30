import { rowOf } from "../../../index/rows.ts";
import { encodeSegment, SEGMENT_ROWS_MAX } from "../../../index/words/segment.ts";
import type { Transaction } from "../database/connections.ts";

/** The index entries of chunks that are not written yet. */
export interface EncodedWords {
  readonly segments: readonly Buffer[];
  /** Words of each chunk. */
  readonly words: readonly number[];
  /** Sum of them. */
  readonly total: number;
}

/** Encodes chunks by these texts. Pure. */
export function encodeWords(texts: readonly string[]): EncodedWords {
  const segments: Buffer[] = [];
  const words: number[] = [];
  for (let at = 0; at < texts.length; at += SEGMENT_ROWS_MAX) {
    const segment = encodeSegment(texts.slice(at, at + SEGMENT_ROWS_MAX));
    segments.push(segment.data);
    words.push(...segment.words);
  }
  return { segments, words, total: words.reduce((sum, count) => sum + count, 0) };
}

/** Indexes chunks, the rows of each text's from its `firstRow` on. The caller adds the segments to the counts of the scope. */
export async function addWords(
  tx: Transaction,
  accountId: string,
  texts: readonly { readonly firstRow: number; readonly words: EncodedWords }[],
): Promise<void> {
  const segments = texts.flatMap(({ firstRow, words }) =>
    words.segments.map((data, at) => ({ firstRow: firstRow + at * SEGMENT_ROWS_MAX, data })),
  );
  await tx.run(
    `INSERT INTO word_segment (account_id, first_row, data)
    SELECT @accountId, first_row, data FROM unnest(@firstRows::bigint[], @segments::bytea[]) AS segment (first_row, data)`,
    {
      accountId,
      firstRows: segments.map(({ firstRow }) => firstRow),
      segments: segments.map(({ data }) => data),
    },
  );
}

/** Removes the chunks of consecutive rows of a scope, which were added at once. The caller counts them as removed. */
export async function removeWords(
  tx: Transaction,
  { accountId, scope }: { readonly accountId: string; readonly scope: number },
  firstRow: number,
  chunks: number,
): Promise<void> {
  const first = firstRow - rowOf(scope, 0);
  await tx.run(
    `INSERT INTO word_removal (account_id, scope, first, last)
    SELECT @accountId, @scope, at, least(at + ${SEGMENT_ROWS_MAX}, @end::bigint) - 1
    FROM generate_series(@first::bigint, @end::bigint - 1, ${SEGMENT_ROWS_MAX}) AS at`,
    { accountId, scope, first, end: first + chunks },
  );
}
