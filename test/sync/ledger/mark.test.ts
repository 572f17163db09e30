import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type LedgerMark, markFile, openMark } from "../../../src/sync/ledger/mark.ts";

let stateDir: string;
let ledger: string;
let db: Database.Database;
let writes: number;
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), "kbsync-mark-"));
  ledger = join(stateDir, "ledger.db");
  db = new Database(ledger);
  db.exec("CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)");
  writes = 0;
});
afterEach(() => {
  db.close();
  rmSync(stateDir, { recursive: true });
});

const open = (): LedgerMark =>
  openMark(db, { stateDir, ledger }, async (change) => {
    writes += 1;
    change();
    await Promise.resolve();
  });
const countIn = (): number =>
  Number(db.prepare("SELECT value FROM meta WHERE name = 'mark'").pluck().get() ?? 0);
const setCount = (count: number): void =>
  void db.prepare("INSERT OR REPLACE INTO meta VALUES ('mark', ?)").run(String(count));
const noted = (): { count: number } =>
  JSON.parse(readFileSync(markFile(stateDir), "utf8")) as { count: number };
/** A process that writes to the ledger and ends. */
const session = (): boolean => {
  const mark = open();
  const isOlder = mark.begin();
  mark.written();
  mark.end()();
  return isOlder;
};

describe("a ledger in order", () => {
  it("a new ledger is not old", () => {
    expect(open().begin()).toBe(false);
    expect(existsSync(markFile(stateDir))).toBe(false);
  });

  it("a ledger that has reached its mark is not old, through any number of processes", async () => {
    for (const _ of [1, 2, 3]) expect(session()).toBe(false);
    await new Promise(setImmediate);
    expect(noted().count).toBe(countIn());
    expect(countIn()).toBe(6);
  });

  it("a ledger whose mark a crash left behind is not old", () => {
    session();
    setCount(countIn() + 1);
    expect(open().begin()).toBe(false);
  });

  it("a ledger that counted once and died before its mark was written is not old", () => {
    setCount(1);
    expect(open().begin()).toBe(false);
  });

  it("a ledger older than marks is not old, whatever the mark's count", () => {
    writeFileSync(markFile(stateDir), JSON.stringify({ count: 9, file: 1 }));
    expect(open().begin()).toBe(false);
  });

  it("a ledger whose mark lacks a time is not old", () => {
    session();
    const { atMs: _atMs, ...mark } = noted() as { count: number; atMs?: number };
    writeFileSync(markFile(stateDir), JSON.stringify(mark));
    utimesSync(markFile(stateDir), 1, 1);
    expect(open().begin()).toBe(false);
  });

  it("a ledger whose mark was renamed some seconds after it was written is not old", () => {
    session();
    const { mtimeMs } = statSync(markFile(stateDir));
    utimesSync(markFile(stateDir), mtimeMs / 1000 - 9, mtimeMs / 1000 - 9);
    expect(open().begin()).toBe(false);
  });
});

it("a copy of a new ledger to which nothing else was written is old", async () => {
  open().begin();
  await new Promise(setImmediate);
  copyFileSync(ledger, `${ledger}.copy`);
  renameSync(`${ledger}.copy`, ledger);
  expect(open().begin()).toBe(true);
});

describe("an old ledger", () => {
  beforeEach(() => void session());

  it.each<[what: string, change: () => void]>([
    ["whose count is behind its mark", () => setCount(countIn() - 1)],
    ["whose mark is missing", () => rmSync(markFile(stateDir))],
    ["whose mark cannot be parsed", () => writeFileSync(markFile(stateDir), '{"count":')],
    [
      "that is another file than its mark names",
      () => {
        copyFileSync(ledger, `${ledger}.copy`);
        renameSync(`${ledger}.copy`, ledger);
      },
    ],
    [
      "whose mark was restored with it",
      () => {
        const { mtimeMs } = statSync(markFile(stateDir));
        utimesSync(markFile(stateDir), mtimeMs / 1000 - 11, mtimeMs / 1000 - 11);
      },
    ],
  ])("detects a ledger %s as old", (_what, change) => {
    change();
    expect(open().begin()).toBe(true);
  });

  it("a ledger is old until it is written to again", () => {
    setCount(countIn() - 1);
    const mark = open();
    expect(mark.begin()).toBe(true);
    mark.written();
    mark.end()();
    expect(open().begin()).toBe(false);
  });
});

describe("the ledger's mark", () => {
  it("advances the mark with the first write, then at most once a minute", async () => {
    const mark = open();
    mark.begin();
    for (const _ of [1, 2, 3]) mark.written();
    await new Promise(setImmediate);
    expect([writes, countIn(), noted().count]).toEqual([1, 1, 1]);
  });

  it("advances the mark at the end of a process that wrote, and of no other", () => {
    setCount(1);
    const idle = open();
    idle.written();
    idle.end()();
    idle.begin();
    idle.end()();
    expect([writes, countIn(), existsSync(markFile(stateDir))]).toEqual([0, 1, false]);
  });

  it("makes the mark unreadable for other users", () => {
    session();
    expect(statSync(markFile(stateDir)).mode & 0o777).toBe(0o600);
  });
});
