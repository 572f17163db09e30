import type { DocumentEntry } from "../../../../wire/documents.ts";
import {
  ENTRY_COLUMNS,
  entryOf,
  WORD_COLUMNS,
  wordFilter,
  type EntryRow,
  type WordRow,
} from "../../rows/document-entries.ts";
import type { ListPosition, DocumentsPage, DocumentsQuery, Statuses } from "../../search-index.ts";
import type { Transaction } from "../database/connections.ts";
import { findTarget } from "./target.ts";
import type { FilterCache } from "./filters.ts";

/** Documents that one statement looks at for words. */
const STEP = 500;

type Status = DocumentEntry["status"];

/** The columns of a document that decide its position in a list. */
interface Sorted extends ListPosition {
  readonly number: number;
  readonly status: Status;
}

const NO_STATUSES: Statuses = { queued: 0, chunked: 0, error: 0 };

const OF_SCOPE = "account_id = @accountId AND scope = @scope AND NOT is_deleted";

/** Lists the documents of a scope, without their texts. Looks at all only to count those that match words. */
export async function listDocuments(
  tx: Transaction,
  filters: FilterCache,
  query: DocumentsQuery,
): Promise<DocumentsPage> {
  const target = await findTarget(tx, filters, query.scope);
  if (target === undefined) return { documents: [], next: undefined, statuses: NO_STATUSES };
  const of = { accountId: target.accountId, scope: target.scope };
  const isFirst = query.after === undefined;
  const hasWords = wordFilter(query.text);
  const isCounting = isFirst && hasWords !== undefined;
  const { found, counted } = await walk(tx, of, query, hasWords, isCounting);
  const shown = found.slice(0, query.limit);
  const last = shown.at(-1);
  return {
    documents: await readEntries(tx, target.accountId, shown),
    next:
      found.length > query.limit && last !== undefined
        ? { updatedAt: last.updatedAt, id: last.id }
        : undefined,
    statuses: isCounting ? counted : isFirst ? await countAll(tx, of) : undefined,
  };
}

/** The scope of a list, as parameters of its statements. */
type ListedScope = Readonly<Record<"accountId", string> & Record<"scope", number>>;

/** Walks from the last changed document, up to one more than a page has, or to the end to count. */
async function walk(
  tx: Transaction,
  of: ListedScope,
  { status, limit, after: start }: DocumentsQuery,
  hasWords: ReturnType<typeof wordFilter>,
  isCounting: boolean,
): Promise<{ readonly found: readonly Sorted[]; readonly counted: Statuses }> {
  const isFiltering = status !== undefined && !isCounting;
  const max = hasWords === undefined ? limit + 1 : STEP;
  const texts = hasWords === undefined ? "" : `, ${WORD_COLUMNS}`;
  const found: Sorted[] = [];
  const counted = { ...NO_STATUSES };
  for (let after = start; ;) {
    const rows = await tx.all<Sorted & WordRow>(
      `SELECT number, id, updated_at AS "updatedAt", status${texts} FROM resource
      WHERE ${OF_SCOPE} ${isFiltering ? "AND status = @status" : ""}
        ${after === undefined ? "" : "AND (updated_at, id) < (@updatedAt, @id)"}
      ORDER BY updated_at DESC, id DESC LIMIT @max`,
      { ...of, ...after, status, max },
    );
    for (const row of rows) {
      if (hasWords?.(row) === false) continue;
      counted[row.status] += 1;
      if ((status === undefined || row.status === status) && found.length <= limit) found.push(row);
    }
    after = rows.at(-1) ?? after;
    if (rows.length < max || (!isCounting && found.length > limit)) return { found, counted };
  }
}

/** Counts the documents of each status. Those that are not searchable yet have an index of their own. */
async function countAll(tx: Transaction, of: ListedScope): Promise<Statuses> {
  const rows = await tx.all<{ readonly status: Status; readonly count: number }>(
    `SELECT status, count(*) AS count FROM resource WHERE ${OF_SCOPE} AND status <> 'chunked' GROUP BY status`,
    of,
  );
  const counts = { ...NO_STATUSES, ...Object.fromEntries(rows.map(({ status, count }) => [status, count])) };
  const all = await tx.get<{ readonly resources: number }>(
    "SELECT resources FROM scope WHERE number = @scope",
    of,
  );
  return { ...counts, chunked: (all?.resources ?? 0) - counts.queued - counts.error };
}

async function readEntries(
  tx: Transaction,
  accountId: string,
  shown: readonly Sorted[],
): Promise<DocumentEntry[]> {
  if (shown.length === 0) return [];
  const rows = await tx.all<EntryRow>(
    `SELECT ${ENTRY_COLUMNS} FROM resource WHERE account_id = @accountId AND number = ANY (@numbers::bigint[])`,
    { accountId, numbers: shown.map(({ number }) => number) },
  );
  const rowOf = new Map(rows.map((row) => [row._id, row]));
  return shown.flatMap(({ id }) => {
    const row = rowOf.get(id);
    return row === undefined ? [] : [entryOf(row)];
  });
}
