import { mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { sqliteMaintenance } from "../../../../src/kb/store/sqlite/maintenance.ts";
import { openWriter } from "../../../../src/kb/store/sqlite/writer.ts";

/** Paths of the files that this process has open. */
function openFiles(): string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)];
    } catch {
      // The descriptor of the folder read here is closed by now.
      return [];
    }
  });
}

it("reports a store that cannot be read as the store's failure", () => {
  const folder = mkdtempSync(join(tmpdir(), "kbsync-known-"));
  const path = join(folder, "kb.sqlite");
  try {
    const maintenance = sqliteMaintenance(path);
    maintenance.upgrade();
    const db = new Database(path);
    db.pragma("foreign_keys = OFF");
    for (const table of ["stored_file", "api_key"]) db.exec(`DROP TABLE ${table}`);
    db.close();
    const failure = expect.objectContaining({ code: "store_failed", subject: path }) as unknown;
    expect(() => maintenance.uploads()).toThrow(failure);
    expect(() => maintenance.keys()).toThrow(failure);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it("lists the uploads of a store by token and leaves no file of it open", async () => {
  const folder = mkdtempSync(join(tmpdir(), "kbsync-known-"));
  const path = join(folder, "kb.sqlite");
  try {
    sqliteMaintenance(path).upgrade();
    const writer = openWriter(path);
    const account = await writer.records.ensureAccount("local");
    for (const token of ["b", "a"]) {
      const file = {
        accountId: account.id,
        token,
        name: `${token}.txt`,
        mediaType: "text/plain",
        sizeBytes: 3,
        sha256: token.repeat(64),
        createdAt: "2026-01-01T00:00:00.000Z",
      };
      await writer.records.addFile(file);
    }
    await writer.close();
    expect(sqliteMaintenance(path).uploads()).toEqual(
      ["a", "b"].map((token) => ({ token, name: `${token}.txt`, sizeBytes: 3, sha256: token.repeat(64) })),
    );
    expect(openFiles().filter((file) => file.startsWith(folder))).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
