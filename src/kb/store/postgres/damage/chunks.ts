import { rowOf, SEQUENCE_MAX, type RowRange } from "../../../index/rows.ts";
import { packedBytes } from "../../../index/sentence-codes.ts";
import { dimensionsIn } from "../../../index/quantized.ts";
import { LENGTH_MAX } from "../../../index/words/part.ts";
import type { Transaction } from "../database/connections.ts";
import { readIndexed, type RunCache } from "./indexed.ts";
import { damageIn, type Checked, type CheckedScope, type FoundDamage } from "./scope.ts";

/** Vectors that a step reads for each of its chunks at most, so that many that belong to no chunk cannot fill the memory. */
const VECTORS_MAX = 4;

/** What a check remembers from step to step. */
export interface ChunkMemory {
  /** Chunks of one step. */
  readonly stepRows: number;
  readonly runs: RunCache;
  /** Number of vectors by their bytes, for each model: most of them are right. */
  readonly lengths: Map<number, Map<number, number>>;
}

export function makeChunkMemory(stepRows: number): ChunkMemory {
  return { stepRows, runs: new Map(), lengths: new Map() };
}

interface LiveChunk {
  readonly row: number;
  readonly words: number;
  /** The live document whose version it belongs to. */
  readonly id: string | null;
}

/** Compares the chunks of a scope after a row with their document, the index of words and their vectors. */
export async function checkChunks(
  tx: Transaction,
  of: CheckedScope,
  after: number,
  memory: ChunkMemory,
): Promise<Checked> {
  const { accountId, scope } = of;
  const within = { first: Math.max(after + 1, rowOf(scope, 0)), last: rowOf(scope, SEQUENCE_MAX) };
  const live = await readLive(tx, accountId, within, memory.stepRows);
  const isLast = live.length < memory.stepRows;
  const range = { first: within.first, last: isLast ? within.last : (live.at(-1)?.row ?? 0) };
  return {
    damage: [
      ...live.flatMap(({ row, id }) => (id === null ? [damageIn(of, "strayChunks", `chunk ${row}`)] : [])),
      ...(await checkWords(tx, of, live, range, memory.runs)),
      ...(await checkVectors(tx, of, live, range, memory)),
    ],
    next: isLast ? undefined : range.last,
  };
}

/** Reads the first chunks of a range of rows. In two statements: a join is slow until PostgreSQL has statistics of the tables. */
async function readLive(
  tx: Transaction,
  accountId: string,
  { first, last }: RowRange,
  limit: number,
): Promise<LiveChunk[]> {
  const chunks = await tx.all<{ row: number; words: number; resource: number }>(
    `SELECT row, words, resource FROM chunk WHERE account_id = @accountId AND row BETWEEN @first AND @last
    ORDER BY row LIMIT @limit`,
    { accountId, first, last, limit },
  );
  const numbers = [...new Set(chunks.map(({ resource }) => resource))];
  const documents = await tx.all<{ number: number; id: string; first: number; chunks: number }>(
    `SELECT number, id, first_row AS first, chunks FROM resource
    WHERE account_id = @accountId AND number = ANY (@numbers::bigint[]) AND NOT is_deleted`,
    { accountId, numbers },
  );
  const byNumber = new Map(documents.map((document) => [document.number, document]));
  return chunks.map(({ row, words, resource }) => {
    const document = byNumber.get(resource);
    const isOf = document !== undefined && row >= document.first && row < document.first + document.chunks;
    return { row, words, id: isOf ? document.id : null };
  });
}

/** Compares the chunks of a range of rows with the parts of the index of words that have it. */
async function checkWords(
  tx: Transaction,
  of: CheckedScope,
  live: readonly LiveChunk[],
  range: RowRange,
  runs: RunCache,
): Promise<FoundDamage[]> {
  const { lengths, damaged } = await readIndexed(tx, of, range, runs);
  const starting = damaged.filter(({ first }) => first >= range.first);
  const damage = starting.map(({ kind, number, first, last }) => {
    const name = kind === "run" ? `run ${number}` : `the segment of row ${number}`;
    const ids = documentsOf(live.filter(({ row }) => row >= first && row <= last));
    const shown = [...ids.slice(0, 3), ...(ids.length > 3 ? ["…"] : [])].join(", ");
    return damageIn(of, "damagedParts", shown === "" ? name : `${name}, with document ${shown}`, {
      kind,
      number,
    });
  });
  const isDamaged = (row: number): boolean => damaged.some(({ first, last }) => row >= first && row <= last);
  const checked = live.filter(({ row }) => !isDamaged(row));
  const missing = checked.filter(({ row }) => !lengths.has(row));
  const wrong = checked.filter(({ row, words }) => {
    const length = lengths.get(row);
    return length !== undefined && length !== Math.min(words, LENGTH_MAX);
  });
  const rows = new Set(live.map(({ row }) => row));
  const stray = [...lengths.keys()].filter((row) => !rows.has(row));
  return [
    ...damage,
    ...documentsOf(missing).map((id) =>
      damageIn(of, "missingWords", `document ${id}`, { kind: "document", id }),
    ),
    ...documentsOf(wrong).map((id) => damageIn(of, "wrongWords", `document ${id}`, { kind: "document", id })),
    ...stray.map((row) => damageIn(of, "strayWords", `chunk ${row}`)),
  ];
}

function documentsOf(chunks: readonly LiveChunk[]): string[] {
  return [...new Set(chunks.flatMap(({ id }) => id ?? []))];
}

/** Checks that the vectors of a range of rows belong to a chunk and have the length of their model. */
async function checkVectors(
  tx: Transaction,
  of: CheckedScope,
  live: readonly LiveChunk[],
  range: RowRange,
  { lengths: known, stepRows }: ChunkMemory,
): Promise<FoundDamage[]> {
  // The length of a value is stored beside it, so the value itself is not read.
  const vectors = await tx.all<{ row: number; model: number; bytes: number; sentenceBytes: number | null }>(
    `SELECT row, model, octet_length(value) AS bytes, octet_length(vectors) AS "sentenceBytes"
    FROM chunk_vector LEFT JOIN sentence_vectors USING (account_id, row, model)
    WHERE account_id = @accountId AND row BETWEEN @first AND @last ORDER BY row LIMIT @limit`,
    { accountId: of.accountId, ...range, limit: VECTORS_MAX * stepRows },
  );
  for (const { model, bytes } of vectors) {
    const counts = known.get(model) ?? new Map<number, number>();
    known.set(model, counts.set(bytes, (counts.get(bytes) ?? 0) + 1));
  }
  const ids = new Map(live.map(({ row, id }) => [row, id]));
  const usual = new Map([...known].map(([model, counts]) => [model, mostFrequent(counts)]));
  const wrong = vectors.filter(({ model, bytes, sentenceBytes }) => {
    const expected = usual.get(model);
    if (expected === undefined) return false;
    return bytes !== expected || (sentenceBytes ?? 0) % packedBytes(dimensionsIn(expected)) !== 0;
  });
  const subjects = wrong.flatMap(({ row }) => {
    const id = ids.get(row) ?? undefined;
    return id === undefined ? [] : `document ${id}`;
  });
  return [
    ...vectors.flatMap(({ row }) => (ids.has(row) ? [] : damageIn(of, "strayVectors", `row ${row}`))),
    ...[...new Set(subjects)].map((subject) => damageIn(of, "wrongVectors", subject)),
  ];
}

/** Returns the key with the highest count; undefined if it has no more than another one. */
function mostFrequent(counts: ReadonlyMap<number, number>): number | undefined {
  const [first, second] = [...counts].toSorted(([, a], [, b]) => b - a);
  return first === undefined || first[1] === second?.[1] ? undefined : first[0];
}
