import type { ChangeRecords } from "../../changes.ts";
import { BEFORE_ALL, changeOf, cursorOf, type ChangeRow, type NewChange } from "../../rows/changes.ts";
import type { Transaction } from "../database/connections.ts";

/** Most changes of an account that are stored. */
const CHANGES_MAX = 500_000;

/** The feed of changes inside a transaction. */
export function changesOn(tx: Transaction): ChangeRecords {
  /** Returns the ordinal that a cursor continues after; undefined if changes after it are missing. */
  const ordinalOf = async (accountId: string, cursor: string | undefined): Promise<number | undefined> => {
    if (cursor === undefined) return 0;
    if (cursor === BEFORE_ALL) {
      const oldest = await tx.get<{ ordinal: number | null }>(
        "SELECT min(ordinal) AS ordinal FROM document_change WHERE account_id = @accountId",
        { accountId },
      );
      return (oldest?.ordinal ?? 1) === 1 ? 0 : undefined;
    }
    const ordinal = Number.parseInt(cursor, 10);
    if (!Number.isSafeInteger(ordinal)) return undefined;
    const row = await tx.get<ChangeRow>(
      "SELECT * FROM document_change WHERE account_id = @accountId AND ordinal = @ordinal",
      { accountId, ordinal },
    );
    return row !== undefined && cursorOf(row) === cursor ? ordinal : undefined;
  };
  return {
    async changes({ accountId, cursor, limit }) {
      const after = await ordinalOf(accountId, cursor);
      if (after === undefined) return undefined;
      const rows = await tx.all<ChangeRow>(
        `SELECT * FROM document_change WHERE account_id = @accountId AND ordinal > @after
        ORDER BY ordinal LIMIT @rows`,
        { accountId, after, rows: limit + 1 },
      );
      const changes = rows.slice(0, limit).map(changeOf);
      return { changes, cursor: changes.at(-1)?.cursor ?? cursor ?? BEFORE_ALL, more: rows.length > limit };
    },
    async newestCursor(accountId) {
      const newest = await tx.get<ChangeRow>(
        "SELECT * FROM document_change WHERE account_id = @accountId ORDER BY ordinal DESC LIMIT 1",
        { accountId },
      );
      return newest === undefined ? BEFORE_ALL : cursorOf(newest);
    },
    purgeChanges: (beforeIso, limit) =>
      // The newest change of an account stays.
      tx.run(
        `DELETE FROM document_change WHERE (account_id, ordinal) IN (
          SELECT account_id, ordinal FROM document_change JOIN account ON account.id = account_id
          WHERE ordinal < account.changes AND (at < @beforeIso OR ordinal <= account.changes - ${CHANGES_MAX})
          ORDER BY account_id, ordinal LIMIT @limit)`,
        { beforeIso, limit },
      ),
  };
}

/** Adds a change of a document. Locks as `addChanges`. */
export function addChange(tx: Transaction, change: NewChange): Promise<void> {
  return addChanges(tx, change.account_id, [change]);
}

/**
 * Adds changes of an account's documents in their order. Locks the row of the account until the end of the transaction, so that
 * ordinals are committed in order.
 */
export async function addChanges(
  tx: Transaction,
  accountId: string,
  changes: readonly NewChange[],
): Promise<void> {
  const names = COLUMNS.map(([name]) => name).join(", ");
  await tx.run(
    `WITH counted AS (UPDATE account SET changes = changes + @count::bigint WHERE id = @accountId RETURNING changes)
    INSERT INTO document_change (account_id, ordinal, ${names})
    SELECT @accountId, changes - @count::bigint + nth, ${names}
    FROM counted CROSS JOIN unnest(${COLUMNS.map(([name, type]) => `@${name}::${type}[]`).join(", ")})
      WITH ORDINALITY AS new (${names}, nth)`,
    {
      accountId,
      count: changes.length,
      ...Object.fromEntries(COLUMNS.map(([name]) => [name, changes.map((change) => change[name])])),
    },
  );
}

/** Columns of a change with their types. */
const COLUMNS = [
  ["kind", "text"],
  ["resource_id", "text"],
  ["collection_id", "text"],
  ["owner_id", "text"],
  ["at", "text"],
  ["version", "bigint"],
  ["revision", "bigint"],
  ["status", "text"],
  ["sha256", "bytea"],
  ["path", "text"],
] as const satisfies readonly (readonly [keyof ChangeRow, string])[];
