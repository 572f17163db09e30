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

describe("a ledger is no older one", () => {
  it("when it is new", () => {
    expect(open().begin()).toBe(false);
    expect(existsSync(markFile(stateDir))).toBe(false);
  });

  it("when it has come as far as its mark, through any number of processes", async () => {
    for (const _ of [1, 2, 3]) expect(session()).toBe(false);
    await new Promise(setImmediate);
    expect(noted().count).toBe(countIn());
    expect(countIn()).toBe(6);
  });

  it("when a crash left its mark behind", () => {
    session();
    setCount(countIn() + 1);
    expect(open().begin()).toBe(false);
  });

  it("when it counted once and died before its mark was written", () => {
    setCount(1);
    expect(open().begin()).toBe(false);
  });

  it("when it is from before there were marks, beside a mark of whatever count", () => {
    writeFileSync(markFile(stateDir), JSON.stringify({ count: 9, file: 1 }));
    expect(open().begin()).toBe(false);
  });

  it("when its mark is of a version that noted no time", () => {
    session();
    const { atMs: _atMs, ...mark } = noted() as { count: number; atMs?: number };
    writeFileSync(markFile(stateDir), JSON.stringify(mark));
    utimesSync(markFile(stateDir), 1, 1);
    expect(open().begin()).toBe(false);
  });

  it("when its mark was put in place some seconds after it was written", () => {
    session();
    const { mtimeMs } = statSync(markFile(stateDir));
    utimesSync(markFile(stateDir), mtimeMs / 1000 - 9, mtimeMs / 1000 - 9);
    expect(open().begin()).toBe(false);
  });
});

describe("a ledger is an older one", () => {
  beforeEach(() => void session());

  it.each<[what: string, change: () => void]>([
    ["when it has not come as far as its mark", () => setCount(countIn() - 1)],
    ["when its mark is gone", () => rmSync(markFile(stateDir))],
    ["when its mark cannot be understood", () => writeFileSync(markFile(stateDir), '{"count":')],
    [
      "when it is another file than the noted one",
      () => {
        copyFileSync(ledger, `${ledger}.copy`);
        renameSync(`${ledger}.copy`, ledger);
      },
    ],
    [
      "when its mark was put back with it",
      () => {
        const { mtimeMs } = statSync(markFile(stateDir));
        utimesSync(markFile(stateDir), mtimeMs / 1000 - 11, mtimeMs / 1000 - 11);
      },
    ],
  ])("%s", (_what, change) => {
    change();
    expect(open().begin()).toBe(true);
  });

  it("until it is written to again", () => {
    setCount(countIn() - 1);
    const mark = open();
    expect(mark.begin()).toBe(true);
    mark.written();
    mark.end()();
    expect(open().begin()).toBe(false);
  });
});

describe("the mark moves", () => {
  it("with the first write, and then once a minute at most", async () => {
    const mark = open();
    mark.begin();
    for (const _ of [1, 2, 3]) mark.written();
    await new Promise(setImmediate);
    expect([writes, countIn(), noted().count]).toEqual([1, 1, 1]);
  });

  it("at the end of a process that wrote, and of no other", () => {
    const idle = open();
    idle.written();
    idle.end()();
    idle.begin();
    idle.end()();
    expect([writes, countIn(), existsSync(markFile(stateDir))]).toEqual([0, 0, false]);
  });

  it("for nobody else to read", () => {
    session();
    expect(statSync(markFile(stateDir)).mode & 0o777).toBe(0o600);
  });
});
