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
import type { Connection } from "../database/connection.ts";
import type { prepareScopes } from "./scopes.ts";

/** Documents that one step looks at: a few milliseconds. */
const STEP = 500;
/** So few matching documents are read and sorted; for more, a walk along the index of the order finds a page sooner. */
const FEW = 1000;

type Status = DocumentEntry["status"];

/** The columns of a document that decide its position in a list. */
interface Sorted extends ListPosition {
  readonly number: number;
  readonly status: Status;
}

/** A list in the making. Holds no more than one page. */
export interface DocumentList {
  /** Looks at some more documents. Returns false if it is done. */
  readonly step: () => boolean;
  readonly page: () => DocumentsPage;
}

const NOTHING: DocumentList = {
  step: () => false,
  page: () => ({ documents: [], next: undefined, statuses: { queued: 0, chunked: 0, error: 0 } }),
};

/**
 * Prepares lists of a scope's documents, without their texts. A list walks along an index from the end of the page before. It looks
 * at all documents only to count those that match words, for the first page.
 */
export function prepareDocumentList(
  db: Connection,
  scopes: ReturnType<typeof prepareScopes>,
): (query: DocumentsQuery) => DocumentList {
  const walk = prepareWalk(db);
  const count = prepareCounts(db);
  const selectEntry = db.prepare<[number], EntryRow>(
    `SELECT ${ENTRY_COLUMNS} FROM resource WHERE number = ? AND is_deleted = 0`,
  );
  const matchesWords = prepareWordFilter(db);

  return (query) => {
    const { status, limit } = query;
    const scope = scopes.find(query.scope)?.scope;
    if (scope === undefined) return NOTHING;
    const hasWords = matchesWords(query.text);
    const isFirst = query.after === undefined;
    // Without words to look for, the counts are known from indexes.
    const known = isFirst && hasWords === undefined ? count.all(scope) : undefined;
    const counted = { queued: 0, chunked: 0, error: 0 };
    const isCounting = isFirst && known === undefined;
    const read = walk(scope, count.unfinished(scope, status, isCounting));
    const found: Sorted[] = [];
    let { after } = query;

    const consider = (each: Sorted): void => {
      const isWanted = status === undefined || each.status === status;
      if (!isCounting && !isWanted) return;
      if (hasWords?.(each.number) === false) return;
      counted[each.status] += 1;
      if (isWanted && found.length <= limit) found.push(each);
    };
    return {
      step: () => {
        const rows = read(after, isCounting ? STEP : Math.min(STEP, Math.max(limit + 1, found.length)));
        for (const row of rows.sorted) consider(row);
        after = rows.sorted.at(-1) ?? after;
        return !rows.isLast && (isCounting || found.length <= limit);
      },
      page: () => {
        const shown = found.slice(0, limit);
        return {
          documents: shown.flatMap(({ number }) => {
            const entry = selectEntry.get(number);
            return entry === undefined ? [] : [entryOf(entry)];
          }),
          next: found.length > limit ? positionOf(shown.at(-1)) : undefined,
          statuses: isCounting ? counted : known,
        };
      },
    };
  };
}

function positionOf(last: Sorted | undefined): ListPosition | undefined {
  return last === undefined ? undefined : { updatedAt: last.updatedAt, id: last.id };
}

/** Reads documents, the last changed first, after a position. */
type Walk = (
  after: ListPosition | undefined,
  max: number,
) => { readonly sorted: readonly Sorted[]; readonly isLast: boolean };

/** Prepares walks along the index. `few`: all numbers that may match, which are read instead and sorted. */
function prepareWalk(db: Connection): (scope: number, few: ReadonlySet<number> | undefined) => Walk {
  return (scope, few) => {
    const sql = (hasAfter: boolean): string => `
      SELECT number, id, updated_at AS updatedAt, status
      FROM resource ${few === undefined ? "INDEXED BY resource_by_update" : ""}
      WHERE scope = @scope AND is_deleted = 0
        ${hasAfter ? "AND (updated_at, id) < (@updatedAt, @id)" : ""}
        ${few === undefined ? "" : "AND number IN (SELECT value FROM json_each(@few))"}
      ORDER BY updated_at DESC, id DESC LIMIT @max`;
    const numbers = few === undefined ? {} : { few: JSON.stringify([...few]) };
    return (after, most) => {
      const max = few === undefined ? most : FEW;
      const sorted = db
        .prepare<object, Sorted>(sql(after !== undefined))
        .all({ scope, max, ...numbers, ...after });
      return { sorted, isLast: few !== undefined || sorted.length < max };
    };
  };
}

/** Prepares the counts of a scope's documents, which cost what is not searchable yet. */
function prepareCounts(db: Connection) {
  const selectAll = db.prepare<[number], number>("SELECT resources FROM scope WHERE number = ?").pluck();
  const selectFew = db
    .prepare<[number, Status], number>(
      `SELECT number FROM resource WHERE scope = ? AND status = ? AND status <> 'chunked' AND is_deleted = 0 LIMIT ${FEW + 1}`,
    )
    .pluck();
  const countUnfinished = db.prepare<[number], Omit<Statuses, "chunked">>(`
    SELECT count(*) FILTER (WHERE status = 'queued') AS queued, count(*) FILTER (WHERE status = 'error') AS error
    FROM resource WHERE scope = ? AND status <> 'chunked' AND is_deleted = 0`);
  return {
    all: (scope: number): Statuses => {
      const { queued = 0, error = 0 } = countUnfinished.get(scope) ?? {};
      return { queued, error, chunked: (selectAll.get(scope) ?? 0) - queued - error };
    },
    /** The documents of a status that most do not have, if they are few; undefined if all must be looked at. */
    unfinished: (
      scope: number,
      status: Status | undefined,
      needsAll: boolean,
    ): ReadonlySet<number> | undefined => {
      if (needsAll || status === undefined || status === "chunked") return undefined;
      const few = selectFew.all(scope, status);
      return few.length > FEW ? undefined : new Set(few);
    },
  };
}

/** Prepares the filter by words; undefined: there are none. */
function prepareWordFilter(
  db: Connection,
): (text: string | undefined) => ((number: number) => boolean) | undefined {
  const select = db.prepare<[number], WordRow>(`SELECT ${WORD_COLUMNS} FROM resource WHERE number = ?`);
  return (text) => {
    const matches = wordFilter(text);
    if (matches === undefined) return undefined;
    return (number) => {
      const row = select.get(number);
      return row !== undefined && matches(row);
    };
  };
}
