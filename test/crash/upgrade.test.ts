import { readdirSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { copyOf, upgrade } from "../../src/lib/upgrade.ts";
import { NOTES } from "../lib/notes-schema.ts";
import { canMount, mountDisk, type SmallDisk } from "./mount.ts";

const DISK_KIB = 1024;
const mayMount = canMount();
const NEEDS_MOUNT = mayMount ? "" : " (skipped: this user may not mount a disk)";

describe.skipIf(!mayMount)(`an upgrade on a disk without room for the copy${NEEDS_MOUNT}`, () => {
  let disk: SmallDisk;
  beforeEach(() => {
    disk = mountDisk({ sizeKib: DISK_KIB });
  });
  afterEach(() => disk.unmount());

  it("leaves the file as it is and says what it needs, and goes on when there is room", () => {
    const file = join(disk.path, "old.db");
    const notes = (): unknown[] => withFile(file, (db) => db.prepare("SELECT text FROM note").pluck().all());
    const open = (scripts: readonly string[]): void =>
      withFile(file, (db) => upgrade(db, { file, kind: "store", schema: { baseline: 1, scripts } }));
    open(NOTES.slice(0, 1));
    const text = "sun ".repeat(25_000);
    withFile(file, (db) => db.prepare("INSERT INTO note VALUES (1, ?)").run(text));
    disk.fill();
    // Room for a log and its shared memory, but not for the copy.
    disk.grow(DISK_KIB + 80);
    expect(() => open(NOTES)).toThrow(
      expect.objectContaining({
        code: "disk_full",
        subject: copyOf(file, 1),
        message: `the store is of an older version, and cannot be copied to ${copyOf(file, 1)} before it is brought up to date: no space is left on its disk`,
      }),
    );
    expect(readdirSync(disk.path).filter((name) => name.includes(".version-"))).toEqual([]);
    disk.free();
    expect(notes()).toEqual([text]);
    open(NOTES);
    expect(notes()).toEqual([text.toUpperCase()]);
  });
});

function withFile<T>(file: string, run: (db: Database.Database) => T): T {
  const db = new Database(file);
  try {
    db.pragma("journal_mode = WAL");
    return run(db);
  } finally {
    db.close();
  }
}
