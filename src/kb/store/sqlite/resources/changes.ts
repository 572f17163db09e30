import type { ChangeKind, ChangesQuery } from "../../changes.ts";
import type { Inside } from "../../methods.ts";
import type { Connection } from "../database/connection.ts";
import {
  BEFORE_ALL,
  changeOf,
  cursorOf,
  newChange,
  type ChangeRow,
  type NewChange,
} from "../../rows/changes.ts";
import type { ResourceRow } from "../../rows/records.ts";

/** Most changes of an account that are stored. */
const CHANGES_MAX = 500_000;

/** Prepares the reads of the feed on a connection of either kind. */
export function prepareChangeReads(
  db: Connection,
): Pick<Inside<"read" | "lookup">["records"], "changes" | "newestCursor"> {
  const selectOne = db.prepare<[string, number], ChangeRow>(
    "SELECT * FROM document_change WHERE account_id = ? AND ordinal = ?",
  );
  const selectNewest = db.prepare<[string], ChangeRow>(
    "SELECT * FROM document_change WHERE account_id = ? ORDER BY ordinal DESC LIMIT 1",
  );
  const selectOldest = db.prepare<[string], { readonly ordinal: number }>(
    "SELECT ordinal FROM document_change WHERE account_id = ? ORDER BY ordinal LIMIT 1",
  );
  const selectAfter = db.prepare<[string, number, number], ChangeRow>(
    "SELECT * FROM document_change WHERE account_id = ? AND ordinal > ? ORDER BY ordinal LIMIT ?",
  );

  /** Returns the ordinal that a cursor continues after; undefined if changes after it are missing. */
  const ordinalOf = (accountId: string, cursor: string | undefined): number | undefined => {
    if (cursor === undefined) return 0;
    if (cursor === BEFORE_ALL) return (selectOldest.get(accountId)?.ordinal ?? 1) === 1 ? 0 : undefined;
    const ordinal = Number.parseInt(cursor, 10);
    const row = Number.isSafeInteger(ordinal) ? selectOne.get(accountId, ordinal) : undefined;
    return row !== undefined && cursorOf(row) === cursor ? ordinal : undefined;
  };

  return {
    changes: ({ accountId, cursor, limit }: ChangesQuery) => {
      const after = ordinalOf(accountId, cursor);
      if (after === undefined) return undefined;
      const rows = selectAfter.all(accountId, after, limit + 1);
      const changes = rows.slice(0, limit).map(changeOf);
      return { changes, cursor: changes.at(-1)?.cursor ?? cursor ?? BEFORE_ALL, more: rows.length > limit };
    },
    newestCursor: (accountId) => {
      const newest = selectNewest.get(accountId);
      return newest === undefined ? BEFORE_ALL : cursorOf(newest);
    },
  };
}

/** Writes the feed. Each method runs inside a transaction of the caller. */
export interface ChangeWrites extends Pick<Inside<"free">["records"], "purgeChanges"> {
  /** Adds a change of a document, which has this row after it; a deleted one, before it. Returns it. */
  add(kind: ChangeKind, row: ResourceRow, nowIso: string): NewChange;
}

/** Prepares the statements on the writing connection. */
export function prepareChangeWrites(db: Connection): ChangeWrites {
  const insert = db.prepare<NewChange>(`
    INSERT INTO document_change (account_id, ordinal, kind, resource_id, collection_id, owner_id, at, version, revision,
      status, sha256, path)
    SELECT @account_id,
      coalesce((SELECT ordinal FROM document_change WHERE account_id = @account_id ORDER BY ordinal DESC LIMIT 1), 0) + 1,
      @kind, @resource_id, @collection_id, @owner_id, @at, @version, @revision, @status, @sha256, @path`);
  const selectAccounts = db.prepare<[], { readonly id: string }>("SELECT id FROM account ORDER BY id");
  const purge = db.prepare<{ accountId: string; beforeIso: string; limit: number }>(`
    WITH newest AS (
      SELECT ordinal FROM document_change WHERE account_id = @accountId ORDER BY ordinal DESC LIMIT 1)
    DELETE FROM document_change WHERE account_id = @accountId AND ordinal IN (
      SELECT ordinal FROM document_change, (SELECT ordinal AS last FROM newest)
      WHERE account_id = @accountId AND ordinal < last AND (at < @beforeIso OR ordinal <= last - ${CHANGES_MAX})
      ORDER BY ordinal LIMIT @limit)`);

  return {
    add: (kind, row, nowIso) => {
      const change = newChange(kind, row, nowIso);
      insert.run(change);
      return change;
    },
    purgeChanges: (beforeIso, limit) => {
      let removed = 0;
      for (const { id: accountId } of selectAccounts.all()) {
        if (removed >= limit) break;
        removed += purge.run({ accountId, beforeIso, limit: limit - removed }).changes;
      }
      return removed;
    },
  };
}
