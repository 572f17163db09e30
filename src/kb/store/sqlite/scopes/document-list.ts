import { DESCRIPTION_CHARS } from "../../../../wire/constants.ts";
import type { DocumentEntry } from "../../../../wire/documents.ts";
import type { ListPosition, DocumentsPage, DocumentsQuery, Statuses } from "../../search-index.ts";
import { folded } from "../../title-key.ts";
import type { Connection } from "../database/connection.ts";
import { queryOf } from "./filters.ts";
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
 * Prepares lists of a scope's documents, without their texts. A list walks along the index of its order from the end of the page
 * before. It looks at all documents only to count those whose title or text matches, for the first page.
 */
export function prepareDocumentList(
  db: Connection,
  scopes: ReturnType<typeof prepareScopes>,
): (query: DocumentsQuery) => DocumentList {
  const walk = prepareWalk(db);
  const count = prepareCounts(db);
  const selectEntry = db.prepare<[number], DocumentEntry & { readonly path: unknown }>(`
    SELECT id AS _id, title, substr(description, 1, ${DESCRIPTION_CHARS}) AS description, url,
      coalesce(json_extract(metadata, '$.path'), json_extract(file_metadata, '$.path')) AS path,
      status, iif(status = 'error', status_error, NULL) AS code, iif(status = 'error', status_message, NULL) AS message,
      warning, created_at AS createdAt, updated_at AS updatedAt, version, chunks
    FROM resource WHERE number = ? AND is_deleted = 0`);
  const matchesWords = prepareWordFilter(db);

  return (query) => {
    const { status, limit } = query;
    const scope = scopes.find(query.scope)?.scope;
    if (scope === undefined) return NOTHING;
    const matching = matchingNumbers(db, scope, query);
    const hasWords = matchesWords(query);
    const isFirst = query.after === undefined;
    // Without words to look for, the counts are known from indexes.
    const known = isFirst && hasWords === undefined ? count.all(scope, matching) : undefined;
    const counted = { queued: 0, chunked: 0, error: 0 };
    const isCounting = isFirst && known === undefined;
    const read = walk(scope, query, fewest(matching, count.unfinished(scope, status, isCounting)));
    const found: Sorted[] = [];
    let { after } = query;

    const consider = (each: Sorted): void => {
      const isWanted = status === undefined || each.status === status;
      if (!isCounting && !isWanted) return;
      if (matching?.has(each.number) === false || hasWords?.(each.number) === false) return;
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
  return last === undefined ? undefined : { key: last.key, id: last.id };
}

/** Returns the smaller set, if it has few numbers. */
function fewest(
  one: ReadonlySet<number> | undefined,
  other: ReadonlySet<number> | undefined,
): ReadonlySet<number> | undefined {
  const [smaller] = [one, other].filter((set) => set !== undefined).toSorted((a, b) => a.size - b.size);
  return smaller !== undefined && smaller.size <= FEW ? smaller : undefined;
}

/** Reads documents in an order, after a position. */
type Walk = (
  after: ListPosition | undefined,
  max: number,
) => { readonly sorted: readonly Sorted[]; readonly isLast: boolean };

/** Prepares walks along the indexes. `few`: all numbers that may match, which are read instead and sorted. */
function prepareWalk(
  db: Connection,
): (scope: number, query: DocumentsQuery, few: ReadonlySet<number> | undefined) => Walk {
  const KEYS = { created: "id", updated: "updated_at", title: "title_key" } as const;
  const INDEXES = { created: "resource_of_scope", updated: "resource_by_update", title: "resource_by_title" };
  return (scope, { sort, descending }, few) => {
    const key = KEYS[sort];
    const [isAfter, order] = descending ? ["<", "DESC"] : [">", "ASC"];
    const sql = (hasAfter: boolean): string => `
      SELECT number, id, ${key} AS key, status
      FROM resource ${few === undefined ? `INDEXED BY ${INDEXES[sort]}` : ""}
      WHERE scope = @scope AND is_deleted = 0
        ${hasAfter ? `AND (${key}, id) ${isAfter} (@key, @id)` : ""}
        ${few === undefined ? "" : "AND number IN (SELECT value FROM json_each(@few))"}
      ORDER BY ${key} ${order}, id ${order} LIMIT @max`;
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
  const selectUnfinished = db.prepare<[number], { readonly number: number; readonly status: Status }>(
    "SELECT number, status FROM resource WHERE scope = ? AND status <> 'chunked' AND is_deleted = 0",
  );
  const selectFew = db
    .prepare<[number, Status], number>(
      `SELECT number FROM resource WHERE scope = ? AND status = ? AND status <> 'chunked' AND is_deleted = 0 LIMIT ${FEW + 1}`,
    )
    .pluck();
  const countUnfinished = db.prepare<[number], Omit<Statuses, "chunked">>(`
    SELECT count(*) FILTER (WHERE status = 'queued') AS queued, count(*) FILTER (WHERE status = 'error') AS error
    FROM resource WHERE scope = ? AND status <> 'chunked' AND is_deleted = 0`);
  return {
    all: (scope: number, matching: ReadonlySet<number> | undefined): Statuses => {
      if (matching === undefined) {
        const { queued = 0, error = 0 } = countUnfinished.get(scope) ?? {};
        return { queued, error, chunked: (selectAll.get(scope) ?? 0) - queued - error };
      }
      const counts = { queued: 0, chunked: matching.size, error: 0 };
      for (const { number, status } of selectUnfinished.iterate(scope)) {
        if (!matching.has(number)) continue;
        counts[status] += 1;
        counts.chunked -= 1;
      }
      return counts;
    },
    /** The documents of a status that most do not have, if they are few; undefined if all must be looked at. */
    unfinished: (
      scope: number,
      status: Status | undefined,
      needsAll: boolean,
    ): ReadonlySet<number> | undefined => {
      if (needsAll || status === undefined || status === "chunked") return undefined;
      return new Set(selectFew.all(scope, status));
    },
  };
}

/** Prepares the filter by title and by words; undefined: the query has neither. */
function prepareWordFilter(
  db: Connection,
): (query: Pick<DocumentsQuery, "title" | "text">) => ((number: number) => boolean) | undefined {
  const selectTitle = db.prepare<[number], string>("SELECT title FROM resource WHERE number = ?").pluck();
  const selectText = db
    .prepare<[number], string>(`
    SELECT title || char(10) || description || char(10) || ifnull(url, '') || char(10) || metadata || char(10) || file_metadata
    FROM resource WHERE number = ?`)
    .pluck();
  return ({ title, text }) => {
    if (title === undefined && text === undefined) return undefined;
    const part = title === undefined ? "" : folded(title);
    const words =
      text === undefined
        ? []
        : folded(text)
            .split(/\s+/)
            .filter((word) => word !== "");
    return (number) => {
      if (part !== "" && !folded(selectTitle.get(number) ?? "").includes(part)) return false;
      if (words.length === 0) return true;
      const whole = folded(selectText.get(number) ?? "");
      return words.every((word) => whole.includes(word));
    };
  };
}

/** The numbers of the documents that have the path and match the filter; undefined: all. */
function matchingNumbers(
  db: Connection,
  scope: number,
  { scope: { filter }, path }: Pick<DocumentsQuery, "scope" | "path">,
): ReadonlySet<number> | undefined {
  const queries: { readonly sql: string; readonly values: readonly unknown[] }[] = [];
  if (path !== undefined) {
    const folder = path.replace(/\/+$/, "");
    // `0` follows `/`, so that the range has what begins with the folder's name and a slash.
    const sql = `SELECT resource FROM metadata_value WHERE scope = ? AND path = 'path' AND kind = 's'
      AND (value = ? OR (value >= ? AND value < ?))`;
    queries.push({ sql, values: [scope, path, `${folder}/`, `${folder}0`] });
  }
  if (filter !== undefined) queries.push(queryOf(scope, filter));
  if (queries.length === 0) return undefined;
  const numbers = db
    .prepare<unknown[], number>(queries.map(({ sql }) => `SELECT * FROM (${sql})`).join(" INTERSECT "))
    .pluck()
    .all(...queries.flatMap(({ values }) => values));
  return new Set(numbers);
}

function entryOf({ path, ...entry }: DocumentEntry & { readonly path: unknown }): DocumentEntry {
  return { ...entry, path: typeof path === "string" ? path : null };
}
