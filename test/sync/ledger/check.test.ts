import Database from "better-sqlite3";
import { mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { checkLedger } from "../../../src/sync/ledger/check.ts";
import { ledgerFile, openLedger } from "../../../src/sync/ledger/ledger.ts";
import { distrustRestored, knownTexts } from "../../../src/sync/ledger/restored.ts";

let stateDir: string;
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), "kbsync-ledger-check-"));
  openLedger(stateDir, "embedded").close();
  damage(`INSERT INTO sources (id, path, owner_id, tier, active) VALUES (1, '/docs', 'docs', 'fastest', 1);
    INSERT INTO files (source, path, doc_id, state, size_bytes, mtime_ms, ctime_ms, ino, rules_key, hash, digest, title,
      label, extractor_version) VALUES (1, 'a.md', 'd1', 'agreed', 1, 1, 1, 1, 1, 'h', 'g', 't', 'l', 1)`);
});
afterEach(() => rmSync(stateDir, { recursive: true }));

function damage(sql: string): void {
  const db = new Database(ledgerFile(stateDir));
  db.pragma("foreign_keys = OFF");
  db.exec(sql);
  db.close();
}

it("finds nothing in a sound ledger, and counts its files", () => {
  expect(checkLedger(stateDir)).toEqual({ files: 1, findings: [] });
  expect(checkLedger(join(stateDir, "none"))).toBeUndefined();
});

describe("a damaged ledger", () => {
  it.each([
    ["wrong counts", "UPDATE sources SET agreed = 7", "ledger-rows"],
    ["an agreed file without a resource", "UPDATE files SET doc_id = NULL", "ledger-rows"],
    ["a file without a source", "UPDATE files SET source = 9", "ledger-structure"],
    [
      "a missing retained text",
      `INSERT INTO trash (source, path, doc_id, name, title, kind, hash, is_exact, size_bytes, deleted_ms, until_ms)
        VALUES (1, 'b.md', 'd2', 'n', 't', 'content', 'h', 1, 5, 1, 2)`,
      "trash",
    ],
  ])("a ledger with %s is reported", (_name, sql, check) => {
    damage(sql);
    const findings = checkLedger(stateDir)?.findings ?? [];
    expect(findings.map((finding) => finding.check)).toEqual([check]);
    expect(findings[0]?.remedy).toMatch(/kbsync/);
  });

  it("reports missing pages, and a file that is not a database, in words", () => {
    truncateSync(ledgerFile(stateDir), 8192);
    expect(checkLedger(stateDir)?.findings[0]).toMatchObject({ check: "ledger-structure", level: "damage" });
    writeFileSync(ledgerFile(stateDir), "<html>".repeat(1000));
    expect(checkLedger(stateDir)?.findings[0]?.remedy).toContain("kbsync sync --recover");
  });
});

it("a ledger that cannot be read does not count as missing", () => {
  rmSync(ledgerFile(stateDir));
  expect(checkLedger(stateDir)).toBeUndefined();
  // An unreadable file fails in the same way, and root can read everything.
  symlinkSync(ledgerFile(stateDir), ledgerFile(stateDir));
  expect(() => checkLedger(stateDir)).toThrow(expect.objectContaining({ code: "path_unseen" }) as Error);
});

it("a restored ledger first compares its sources with the service's list", () => {
  damage("UPDATE sources SET adopted = 1");
  distrustRestored(ledgerFile(stateDir));
  const ledger = openLedger(stateDir, "embedded");
  expect(ledger.contacts.isAdopted(1)).toBe(false);
  ledger.close();
  expect(knownTexts(ledgerFile(stateDir))).toEqual([]);
});
