import { setTimeout as sleep } from "node:timers/promises";
import { KbsyncError } from "../../../lib/failure.ts";
import type { Transaction } from "./database/connections.ts";
import { nameOf, openDatabase, type Database } from "./database/database.ts";
import { readVersions, refuseUnfit, refuseUnknown } from "./database/migrate.ts";
import { isUnfinished } from "./database/unfinished.ts";
import { migratePostgres } from "./open.ts";
import type { MoveSource, MoveTarget, Progress, TextChunk } from "../move/side.ts";
import type { ColumnType, KeyColumn, Position, Row, Table, Value } from "../move/table.ts";
import { TABLES, type Counter } from "../move/tables.ts";

/** Types of parameters; those of lists of values have `[]` behind them. */
const SQL_TYPES: Readonly<Record<ColumnType, string>> = {
  integer: "bigint",
  number: "double precision",
  text: "text",
  boolean: "boolean",
  bytes: "bytea",
  ids: "text",
};

/** Time in which connections of a process that ended disappear, and pause between two checks. */
const ENDED_MS = 5000;
const CHECK_MS = 250;

/** Opens the database to be copied. Throws `move_in_use` while processes of kbsync are connected to it, and as a service does. */
export async function openPostgresSource(url: string): Promise<MoveSource> {
  const database = await openUnused(url);
  return sourceOn(database, url);
}

/**
 * Opens the database to be written, and creates its tables. Throws `move_occupied` if it has records that are not of a copy, and as
 * `openPostgresSource` and `migratePostgres`.
 */
export async function openPostgresTarget(url: string): Promise<MoveTarget> {
  await migratePostgres(url);
  const database = await openUnused(url, true);
  const write = <T>(work: (tx: Transaction) => Promise<T>): Promise<T> => database.run("write", "", work);
  const progress = (): Promise<Progress | undefined> => database.run("snapshot", "", readProgress);
  try {
    if ((await progress()) === undefined) await refuseOccupied(database, nameOf(url));
  } catch (error) {
    await database.close();
    throw error;
  }
  return {
    ...sourceOn(database, url),
    progress,
    begin: (first) =>
      write(async (tx) => {
        await tx.run(UNFINISHED_TABLE);
        await tx.run("INSERT INTO unfinished_move (progress) VALUES (@progress)", {
          progress: JSON.stringify(first),
        });
      }),
    add: (table, rows, before, after) =>
      write(async (tx) => {
        await advance(tx, before, after, nameOf(url));
        if (rows.length > 0) await insert(tx, table, rows);
      }),
    count: (counter, last) =>
      write(async (tx) => {
        await tx.all(`SELECT setval(${sequenceOf(counter)}, greatest(@last::bigint, 1), @last::bigint > 0)`, {
          last,
        });
      }),
    end: () =>
      write(async (tx) => {
        await tx.run("DROP TABLE unfinished_move");
      }),
  };
}

async function openUnused(url: string, isTarget = false): Promise<Database> {
  const database = openDatabase(url);
  const name = nameOf(url);
  try {
    for (let waitedMs = 0; ; waitedMs += CHECK_MS) {
      const { others, versions, unfinished } = await database.run("snapshot", "", inspect);
      refuseUnknown(versions, name);
      if (unfinished && !isTarget) throw unfinishedCopy(name);
      if (others === 0) return database;
      if (waitedMs >= ENDED_MS) throw inUse(name, others);
      await sleep(CHECK_MS);
    }
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** Counts a service's listener too: its other connections close while it has nothing to do. */
async function inspect(tx: Transaction) {
  await refuseUnfit(tx);
  const found = await tx.get<{ readonly others: number }>(
    `SELECT count(*) AS others FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'kbsync%' AND pid <> pg_backend_pid()`,
  );
  return {
    others: found?.others ?? 0,
    versions: await readVersions(tx),
    unfinished: await isUnfinished(tx),
  };
}

function inUse(name: string, others: number): KbsyncError {
  return new KbsyncError(`processes of kbsync are connected to the database ${name}: ${others} connections`, {
    code: "move_in_use",
    subject: name,
    retryable: true,
    hint: "Stop them first: what they write meanwhile would be missing.",
  });
}

function unfinishedCopy(name: string): KbsyncError {
  return new KbsyncError(`the database ${name} has an unfinished copy of another store`, {
    code: "store_unfinished",
    subject: name,
    hint: "Run the same `kbsync move` command again.",
  });
}

const UNFINISHED_TABLE = `
  CREATE TABLE unfinished_move (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    progress text NOT NULL
  )`;

async function readProgress(tx: Transaction): Promise<Progress | undefined> {
  if (!(await isUnfinished(tx))) return undefined;
  const row = await tx.get<{ readonly progress: string }>("SELECT progress FROM unfinished_move");
  // Written by this file.
  return row === undefined ? undefined : (JSON.parse(row.progress) as Progress);
}

/** Notes how far the copy is, unless another process has copied meanwhile. */
async function advance(tx: Transaction, before: Progress, after: Progress, name: string): Promise<void> {
  const changed = await tx.run("UPDATE unfinished_move SET progress = @after WHERE progress = @before", {
    before: JSON.stringify(before),
    after: JSON.stringify(after),
  });
  if (changed === 1) return;
  throw new KbsyncError(`another process copies to the database ${name}`, {
    code: "move_in_use",
    subject: name,
    retryable: true,
    hint: "Let it finish, or stop it and start this command again.",
  });
}

async function refuseOccupied(database: Database, name: string): Promise<void> {
  await database.run("snapshot", "", async (tx) => {
    for (const table of TABLES) {
      const found = await tx.get<{ readonly found: boolean }>(
        `SELECT EXISTS (SELECT 1 FROM ${table.postgres.name}) AS found`,
      );
      if (found?.found !== true) continue;
      throw new KbsyncError(`the database ${name} is not empty: it has a knowledge base already`, {
        code: "move_occupied",
        subject: name,
        hint: "Name an empty database. One on which a service has started once is not empty any more.",
      });
    }
  });
}

function sourceOn(database: Database, url: string): MoveSource {
  const read = <T>(work: (tx: Transaction) => Promise<T>): Promise<T> => database.run("snapshot", "", work);
  return {
    name: nameOf(url),
    page: (table, after) => read((tx) => readPage(tx, table, after)),
    last: async (counter) => {
      const sequence = await read((tx) =>
        tx.get<{ readonly last: number }>(
          `SELECT coalesce(pg_sequence_last_value(${sequenceOf(counter)}::regclass), 0) AS last`,
        ),
      );
      return sequence?.last ?? 0;
    },
    chunks: (accountId, first, last) =>
      read((tx) =>
        tx.all<TextChunk>(
          `SELECT start, text, gap FROM chunk
          WHERE account_id = @accountId AND row BETWEEN @first::bigint AND @last::bigint ORDER BY row`,
          { accountId, first, last },
        ),
      ),
    close: () => database.close(),
  };
}

/** SQL expression for the name of a sequence. */
function sequenceOf({ table, sequence }: Counter): string {
  return sequence === undefined ? `pg_get_serial_sequence('${table}', 'number')` : `'${sequence}'`;
}

async function readPage(tx: Transaction, table: Table, after: Position | undefined) {
  const { key, indexed } = table.postgres;
  const columns = Object.entries(table.columns).map(([name, type]) =>
    type === "ids" ? `array_to_json(t."${name}")::text AS "${name}"` : `t."${name}"`,
  );
  const keyColumns = key.map(({ sql }, at) => `${sql} AS "key ${at}"`);
  const keys = key.map(({ sql }) => sql).join(", ");
  const limits = after === undefined ? [] : behind(key, indexed);
  const parameters = Object.fromEntries((after ?? []).map((value, at) => [`key${at}`, value]));
  const found = await tx.all<Record<string, Value>>(
    `SELECT ${[...columns, ...keyColumns].join(", ")} FROM ${table.postgres.name} AS t
    ${limits.length === 0 ? "" : `WHERE ${limits.join(" AND ")}`} ORDER BY ${keys} LIMIT ${table.pageRows}`,
    parameters,
  );
  const names = Object.keys(table.columns);
  const rows: Row[] = found.map((row) => Object.fromEntries(names.map((name) => [name, row[name] ?? null])));
  const last = found.at(-1);
  // The columns of a key are numbers or texts.
  const next = last && key.map((_, at) => last[`key ${at}`] as string | number);
  return { rows, next };
}

/** Conditions of rows behind a position: one for the whole key, and one that the index has all columns for. */
function behind(key: readonly KeyColumn[], indexed: number): string[] {
  const compare = (columns: readonly KeyColumn[], operator: string): string =>
    `(${columns.map(({ sql }) => sql).join(", ")}) ${operator} (${columns
      .map(({ type }, at) => `@key${at}::${SQL_TYPES[type]}`)
      .join(", ")})`;
  return indexed < key.length
    ? [compare(key.slice(0, indexed), ">="), compare(key, ">")]
    : [compare(key, ">")];
}

async function insert(tx: Transaction, { postgres, columns }: Table, rows: readonly Row[]): Promise<void> {
  const entries = Object.entries(columns);
  const lists = entries.map(([, type], at) => `@list${at}::${SQL_TYPES[type]}[]`);
  const values = entries.map(([column, type]) =>
    type === "ids"
      ? `CASE WHEN new."${column}" IS NOT NULL
          THEN ARRAY(SELECT json_array_elements_text(new."${column}"::json)) END`
      : `new."${column}"`,
  );
  const names = entries.map(([column]) => `"${column}"`).join(", ");
  await tx.run(
    `INSERT INTO ${postgres.name} (${names}) OVERRIDING SYSTEM VALUE
    SELECT ${values.join(", ")} FROM unnest(${lists.join(", ")}) AS new (${names})`,
    Object.fromEntries(entries.map(([column], at) => [`list${at}`, rows.map((row) => row[column] ?? null)])),
  );
}
