import {
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { checkLedger } from "../../../../src/sync/ledger/check.ts";
import { SCHEMA } from "../../../../src/sync/ledger/database/schema.ts";
import { ledgerFile, openLedger } from "../../../../src/sync/ledger/ledger.ts";
import { readStatus } from "../../../../src/sync/operate/status.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-ledger-"));
  file = ledgerFile(folder);
});
afterEach(() => rmSync(folder, { recursive: true }));

const failure = (facts: Record<string, unknown>): Error => expect.objectContaining(facts) as Error;

/** A ledger with enough rows for many pages. */
async function writeLedger(): Promise<void> {
  const ledger = openLedger(folder, "service");
  const source = ledger.sources.open("/docs", "owner", "fastest");
  await ledger.write(() => {
    for (let index = 0; index < 500; index += 1) {
      ledger.files.insert(source.id, `doc-${index}`, "agreed", {
        entry: { path: `folder/file-${index}.txt`, sizeBytes: 1, mtimeMs: 1, ctimeMs: 1, ino: index + 1 },
        rulesKey: 1,
        hash: "h".repeat(64),
        digest: "d".repeat(22),
        title: `title ${index}`,
        label: "l".repeat(22),
        extractorVersion: 1,
        shape: {
          kind: "content",
          tier: "fastest",
          ownerId: "owner",
          settings: { strategy: "recursive", chunkSize: 1000, chunkOverlap: 100 },
        },
        fileUrl: undefined,
      });
    }
  });
  ledger.close();
}

describe("a ledger that is not a sound database", () => {
  it.each<[string, () => void]>([
    ["random bytes", () => writeFileSync(file, Buffer.alloc(20_000, 0xa7))],
    ["a text", () => writeFileSync(file, "words, more than a header's worth of them. ".repeat(50))],
    ["a short text", () => writeFileSync(file, "words\n")],
    ["empty", () => writeFileSync(file, "")],
    ["cut off in a page", () => truncateSync(file, 20_000)],
    ["cut off between pages", () => truncateSync(file, 5 * 4096)],
  ])("refuses an unsound ledger in words and leaves it unchanged: %s", async (_, damage) => {
    await writeLedger();
    damage();
    const before = readFileSync(file);
    const expected = failure({
      code: "ledger_damaged",
      subject: file,
      message: expect.stringContaining(`the ledger ${file} is damaged: `) as string,
      hint: expect.stringContaining("`kbsync sync --recover`") as string,
    });
    expect(() => openLedger(folder, "service")).toThrow(expected);
    expect(() => readStatus(folder, 10)).toThrow(expected);
    expect(readFileSync(file).equals(before)).toBe(true);
  });
});

describe("a foreign ledger", () => {
  it.each([0, 2, 99])(
    "refuses another program's database, of version %s, and creates no table in it",
    (version) => {
      const db = new Database(file);
      db.exec("CREATE TABLE recipes (name TEXT)");
      db.pragma(`user_version = ${version}`);
      db.close();
      const before = readFileSync(file);
      expect(() => openLedger(folder, "service")).toThrow(failure({ code: "ledger_foreign", subject: file }));
      expect(() => readStatus(folder, 10)).toThrow(failure({ code: "ledger_foreign" }));
      expect(readFileSync(file).equals(before)).toBe(true);
    },
  );

  it("refuses a later version's ledger and names both versions", async () => {
    await writeLedger();
    const db = new Database(file);
    const known = Number(db.pragma("user_version", { simple: true }));
    db.pragma("user_version = 99");
    db.close();
    const message: unknown = expect.stringMatching(new RegExp(`version 99, .* up to ${known}`));
    expect(() => openLedger(folder, "service")).toThrow(failure({ code: "ledger_newer", message }));
  });

  it("refuses a ledger from before the first release with instructions, and leaves it unchanged", async () => {
    await writeLedger();
    const db = new Database(file);
    db.pragma(`user_version = ${SCHEMA.baseline - 1}`);
    db.close();
    const before = readFileSync(file);
    const hint: unknown = expect.stringContaining("`kbsync sync --recover`");
    for (const open of [
      () => openLedger(folder, "service"),
      () => readStatus(folder, 10),
      () => checkLedger(folder),
    ])
      expect(open).toThrow(failure({ code: "ledger_older", subject: file, hint }));
    expect(readFileSync(file).equals(before)).toBe(true);
  });
});

describe("creating a ledger", () => {
  it("creates a ledger over the remains of an interrupted creation", async () => {
    writeFileSync(`${file}.new`, "half of it");
    await writeLedger();
    expect(readdirSync(folder).toSorted()).toEqual(["ledger.db"]);
    expect(readStatus(folder, 10)?.sources).toMatchObject([{ path: "/docs", searchable: 500 }]);
  });
});

it("closing a new ledger leaves none of its files open", async () => {
  const openFiles = (): string[] =>
    readdirSync("/proc/self/fd").flatMap((fd) => {
      try {
        return [readlinkSync(`/proc/self/fd/${fd}`)];
      } catch {
        return []; // closed meanwhile
      }
    });
  await writeLedger();
  expect(openFiles().filter((path) => path.startsWith(folder))).toEqual([]);
});

describe("a ledger removed while a daemon runs", () => {
  it.each<[string, () => void]>([
    ["removed", () => rmSync(file)],
    ["removed with its log", () => ["", "-wal", "-shm"].forEach((end) => rmSync(`${file}${end}`))],
    ["its log removed", () => rmSync(`${file}-wal`)],
    [
      "replaced by a copy",
      () => {
        copyFileSync(file, `${file}.copy`);
        rmSync(file);
        copyFileSync(`${file}.copy`, file);
      },
    ],
  ])("a ledger accepts no more writes after it was %s", async (_, takeAway) => {
    await writeLedger();
    const ledger = openLedger(folder, "service");
    await ledger.write(() => ledger.sources.setCollectionId("fastest", "c1"));
    takeAway();
    await expect(ledger.write(() => ledger.sources.setCollectionId("fastest", "c2"))).rejects.toThrow(
      failure({
        code: "ledger_unusable",
        message: expect.stringContaining("was removed or replaced") as string,
      }),
    );
    ledger.abandon();
  });
});
