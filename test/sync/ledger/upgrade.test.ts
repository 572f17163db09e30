import { mkdtempSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { copyOf } from "../../../src/lib/upgrade.ts";
import { checkLedger } from "../../../src/sync/ledger/check.ts";
import { ledgerFile, openLedger } from "../../../src/sync/ledger/ledger.ts";
import { knownTexts, upgradeLedger } from "../../../src/sync/ledger/restored.ts";
import { MIGRATIONS } from "../../../src/sync/ledger/schema.ts";
import { readStatus } from "../../../src/sync/operator/status.ts";
import { FIXTURE_FOLDER, RELEASED, writeFixture } from "../../fixtures/fixture.ts";
import { readTables, shapeOfSteps } from "../../fixtures/tables.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-old-ledger-"));
  file = ledgerFile(folder);
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Versions that are brought up; the last one released may be this program's own. */
const OLDER = RELEASED.ledger.filter((version) => version < MIGRATIONS.length);

describe.each(RELEASED.ledger)("a ledger of version %s", (version) => {
  it("has the tables that the first steps make: none of them has changed since it was released", () => {
    writeFixture(`ledger-${version}`, file);
    expect(readTables(file)).toMatchObject({ version, shape: shapeOfSteps(MIGRATIONS.slice(0, version)) });
  });
});

describe.each(OLDER)("a ledger of version %s", (version) => {
  beforeEach(() => writeFixture(`ledger-${version}`, file));

  it("is brought up to date with every row as it was, and a copy is kept", () => {
    const before = readTables(file);
    upgradeLedger(file);
    const after = readTables(file);
    expect(after).toMatchObject({ version: MIGRATIONS.length, shape: shapeOfSteps(MIGRATIONS) });
    for (const [table, rows] of before.rows)
      expect({ table, rows: after.rows.get(table) }).toMatchObject({
        table,
        // The fourth step notes when the ledger began.
        rows: expect.arrayContaining(rows.map((row) => expect.objectContaining(row) as unknown)) as unknown,
      });
    expect(readTables(copyOf(file, version))).toEqual(before);
    // The kept texts themselves are no part of a fixture.
    expect(checkLedger(folder)?.findings.filter(({ check }) => check !== "trash")).toEqual([]);
  });

  it("tells the same status before and after, and reading it changes nothing", () => {
    const bytes = readFileSync(file);
    const before = readStatus(folder, 10);
    expect(before?.sources).toMatchObject([{ path: FIXTURE_FOLDER, files: 5, inAgreement: 4, failed: 1 }]);
    expect(readFileSync(file).equals(bytes)).toBe(true);
    expect(readdirSync(folder)).toEqual(["ledger.db"]);
    openLedger(folder, "embedded").close();
    expect(readStatus(folder, 10)).toEqual(before);
  });

  it("is checked as it is, and named as older", () => {
    const bytes = readFileSync(file);
    expect(checkLedger(folder)).toMatchObject({
      findings: [{ check: "ledger-version", level: "warning", subject: file }],
    });
    expect(knownTexts(file)).toHaveLength(version < 3 ? 0 : 1);
    expect(readFileSync(file).equals(bytes)).toBe(true);
  });

  it("is left as it is where its copy cannot be made", () => {
    const bytes = readFileSync(file);
    mkdirSync(copyOf(file, version));
    expect(() => openLedger(folder, "embedded")).toThrow(
      expect.objectContaining({ code: "ledger_unusable" }),
    );
    const db = new Database(file);
    db.pragma("journal_mode = DELETE");
    db.close();
    expect(readTables(file)).toMatchObject({ version, shape: shapeOfSteps(MIGRATIONS.slice(0, version)) });
    expect(readFileSync(file).length).toBe(bytes.length);
  });
});
