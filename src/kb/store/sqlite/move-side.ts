import { existsSync, renameSync } from "node:fs";
import { dirname } from "node:path";
import type Database from "better-sqlite3";
import { flush } from "../../../lib/durable-file.ts";
import { KbsyncError } from "../../../lib/failure.ts";
import { isCurrent } from "../../../lib/upgrade.ts";
import { RUN_PAGES_MAX } from "../../index/words/run.ts";
import { openForReading, openForWriting } from "./database/connection.ts";
import { SCHEMA } from "./database/schema.ts";
import type { MoveSource, MoveTarget, Page, Progress, TextChunk } from "../move/side.ts";
import { bytesOf, type Position, type Row, type Table, type Value } from "../move/table.ts";

/** Rows of a page, and bytes after which it ends. */
const PAGE_ROWS = 500;
const PAGE_BYTES = 4 * 1024 * 1024;

/** Path of the unfinished copy of another store. It gets the name of the store when it is complete. */
export function unfinishedFile(path: string): string {
  return `${path}.moving`;
}

/** Opens the store file to be copied, for reading alone. Throws `store_older` for one that the program would have to upgrade first. */
export function openSqliteSource(path: string): MoveSource {
  if (!existsSync(path)) {
    throw new KbsyncError(`there is no store at ${path}`, {
      code: "move_nothing",
      subject: path,
      hint: "Name the state folder of the service with --state-dir.",
    });
  }
  const db = openForReading(path);
  if (!isCurrent(db, SCHEMA)) {
    db.close();
    throw new KbsyncError(`the store ${path} is of an older kbsync`, {
      code: "store_older",
      subject: path,
      hint: "Start the service once with this version, which brings it up to date, and stop it again.",
    });
  }
  return sourceOn(db, path);
}

/** Opens the store file to be written. Throws `move_occupied` if it exists already. */
export function openSqliteTarget(path: string): MoveTarget {
  if (existsSync(path)) {
    throw new KbsyncError(`there is a store at ${path} already`, {
      code: "move_occupied",
      subject: path,
      hint: "Move the file, and those whose names begin like it, to another folder first.",
    });
  }
  const unfinished = unfinishedFile(path);
  const db = openForWriting(unfinished);
  // The writer of a service does so between transactions; a copy has none.
  db.pragma("wal_autocheckpoint = 1000");
  const note = (progress: Progress): void => {
    db.prepare("INSERT OR REPLACE INTO unfinished_move (is_only, progress) VALUES (1, ?)").run(
      JSON.stringify(progress),
    );
  };
  return {
    ...sourceOn(db, path),
    progress: () => Promise.resolve(readProgress(db)),
    begin: (progress) => {
      db.exec("CREATE TABLE unfinished_move (is_only INTEGER PRIMARY KEY, progress TEXT NOT NULL) STRICT");
      note(progress);
      return Promise.resolve();
    },
    add: (table, rows, _, after) => {
      const insert = prepareInsert(db, table);
      db.transaction(() => {
        for (const row of rows) insert.run(bound(row));
        note(after);
      })();
      return Promise.resolve();
    },
    count: ({ table, isRemembered }, last) => {
      if (isRemembered && last > 0) {
        const changed = db
          .prepare("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?")
          .run(last, table).changes;
        if (changed === 0)
          db.prepare("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)").run(table, last);
      }
      return Promise.resolve();
    },
    end: () => {
      db.exec("DROP TABLE unfinished_move");
      // The last connection of a file takes its log into it.
      db.close();
      flush(unfinished);
      renameSync(unfinished, path);
      flush(dirname(path));
      return Promise.resolve();
    },
    close: () => {
      if (db.open) db.close();
      return Promise.resolve();
    },
  };
}

function readProgress(db: Database.Database): Progress | undefined {
  const isThere = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'unfinished_move'").get();
  if (isThere === undefined) return undefined;
  const text = db.prepare<[], string>("SELECT progress FROM unfinished_move").pluck().get();
  // Written by `note` of this file.
  return text === undefined ? undefined : (JSON.parse(text) as Progress);
}

function sourceOn(db: Database.Database, path: string): MoveSource {
  const chunks = db.prepare<[number, number], TextChunk>(
    "SELECT start, text, gap FROM chunk WHERE row BETWEEN ? AND ? ORDER BY row",
  );
  return {
    name: path,
    page: (table, after) => Promise.resolve(readPage(db, table, after)),
    last: ({ table, isRemembered }) => Promise.resolve(lastNumber(db, table, isRemembered)),
    chunks: (_, first, last) => Promise.resolve(chunks.all(first, last)),
    close: () => {
      db.close();
      return Promise.resolve();
    },
  };
}

function lastNumber(db: Database.Database, table: string, isRemembered: boolean): number {
  const highest = db.prepare<[], number>(`SELECT ifnull(max(number), 0) FROM ${table}`).pluck().get();
  const remembered = isRemembered
    ? db.prepare<[string], number>("SELECT seq FROM sqlite_sequence WHERE name = ?").pluck().get(table)
    : 0;
  // A merge that a crash ended has left pages of a run that is not listed.
  const page =
    table === "word_run"
      ? db
          .prepare<[], number>(`SELECT ifnull(max(number), 0) / ${RUN_PAGES_MAX} FROM word_page`)
          .pluck()
          .get()
      : 0;
  return Math.max(highest ?? 0, remembered ?? 0, page ?? 0);
}

function readPage(db: Database.Database, table: Table, after: Position | undefined): Page {
  const { join, key, select } = table.sqlite;
  const columns = Object.keys(table.columns).map((name) => `${select[name] ?? `t."${name}"`} AS "${name}"`);
  const keyColumns = key.map(({ sql }, at) => `${sql} AS "key ${at}"`);
  const keys = key.map(({ sql }) => sql).join(", ");
  const where = after === undefined ? "" : `WHERE (${keys}) > (${key.map(() => "?").join(", ")})`;
  const statement = db.prepare<unknown[], Record<string, Value>>(
    `SELECT ${[...columns, ...keyColumns].join(", ")} FROM ${table.name} AS t ${join} ${where}
    ORDER BY ${keys} LIMIT ${PAGE_ROWS}`,
  );
  const rows: Row[] = [];
  let bytes = 0;
  let next: Position | undefined;
  for (const found of statement.iterate(...(after ?? []))) {
    const row: Record<string, Value> = {};
    for (const [name, type] of Object.entries(table.columns)) {
      const value = found[name] ?? null;
      row[name] = type === "boolean" && value !== null ? value === 1 : value;
    }
    rows.push(row);
    // The columns of a key are numbers or texts.
    next = key.map((_, at) => found[`key ${at}`] as string | number);
    bytes += bytesOf(row);
    if (bytes >= PAGE_BYTES) break;
  }
  return { rows, next };
}

function prepareInsert(db: Database.Database, { name, columns, sqlite }: Table): Database.Statement {
  const values: Record<string, string | null> = {
    ...Object.fromEntries(Object.keys(columns).map((column) => [column, `@${column}`])),
    ...sqlite.insert,
  };
  const written = Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== null);
  return db.prepare(
    `INSERT INTO ${name} (${written.map(([column]) => `"${column}"`).join(", ")})
    VALUES (${written.map(([, sql]) => sql).join(", ")})`,
  );
}

function bound(row: Row): Record<string, string | number | Buffer | null> {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, typeof value === "boolean" ? Number(value) : value]),
  );
}
