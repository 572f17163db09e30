import { readRecord, withoutDamage, type CheckRecord, type Damage } from "../../damage-check.ts";
import type { Transaction } from "../database/connections.ts";

/**
 * Name under which the claims hold the record of the check for damage: like them, it is about the work of processes, ends by time, and may
 * be lost in a crash of the server, after which everything is checked again.
 */
const RECORD = "checked";
const RECORD_DAYS = 90;

/** Reads the record of the check of a database. */
export async function storedRecord(tx: Transaction): Promise<CheckRecord | undefined> {
  return readStored(tx, "");
}

/** Stores the record. Leaves out damage of owners that were erased since it was found. */
export async function saveRecord(tx: Transaction, record: CheckRecord): Promise<void> {
  // Before the owners are read, so that an erasure that is not committed yet waits and removes what is written here.
  await readStored(tx, "FOR UPDATE");
  const owners = [record.now, record.last].flatMap((pass) =>
    pass?.damage.flatMap(({ owner }) => owner ?? []),
  );
  const found = await tx.all<Required<Pick<Damage, "account" | "owner">>>(
    `SELECT DISTINCT account.name AS account, owner_id AS owner
    FROM scope JOIN collection ON collection.id = collection_id JOIN account ON account.id = account_id
    WHERE owner_id = ANY (@owners::text[])`,
    { owners },
  );
  const known = new Set(found.map(keyOf));
  await write(
    tx,
    withoutDamage(record, (each) => each.owner !== undefined && !known.has(keyOf(each))),
  );
}

/** Removes the damage of an owner from the record. */
export async function forgetOwner(tx: Transaction, accountId: string, ownerId: string): Promise<void> {
  const record = await readStored(tx, "FOR UPDATE");
  if (record === undefined) return;
  const of = await tx.get<{ account: string }>("SELECT name AS account FROM account WHERE id = @accountId", {
    accountId,
  });
  await write(
    tx,
    withoutDamage(record, ({ account, owner }) => account === of?.account && owner === ownerId),
  );
}

const keyOf = ({ account, owner }: Pick<Damage, "account" | "owner">): string =>
  JSON.stringify([account, owner]);

async function readStored(tx: Transaction, lock: "" | "FOR UPDATE"): Promise<CheckRecord | undefined> {
  const found = await tx.get<{ record: string }>(
    `SELECT holder AS record FROM claim WHERE name = @name ${lock}`,
    { name: RECORD },
  );
  return readRecord(found?.record);
}

async function write(tx: Transaction, record: CheckRecord): Promise<void> {
  await tx.run(
    `INSERT INTO claim (name, holder, ends_at)
    VALUES (@name, @record, clock_timestamp() + interval '${RECORD_DAYS} days')
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, ends_at = excluded.ends_at`,
    { name: RECORD, record: JSON.stringify(record) },
  );
}
