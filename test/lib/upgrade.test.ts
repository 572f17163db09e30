import { spawnSync } from "node:child_process";
import { mkdtempSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { copyOf, upgrade, type UpgradeListener, versionOf } from "../../src/lib/upgrade.ts";
import { NOTES } from "./notes-schema.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-upgrade-"));
  file = join(folder, "notes.db");
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Opens the file with a connection of its own and upgrades it. */
function open(scripts: readonly string[], listener: UpgradeListener = {}, baseline = 1): void {
  const db = new Database(file);
  try {
    db.pragma("journal_mode = WAL");
    upgrade(db, { file, kind: "store", schema: { baseline, scripts }, listener });
  } finally {
    db.close();
  }
}

/** A file of the first version with two notes. */
function writeFirst(): void {
  open(NOTES.slice(0, 1));
  const db = new Database(file);
  db.exec("INSERT INTO note VALUES (1, 'sun'), (2, 'moon')");
  db.close();
}

/** Version, rows and soundness of a database file. */
function read(path: string): { version: number; texts: unknown[]; sound: unknown } {
  const db = new Database(path, { fileMustExist: true });
  try {
    return {
      version: versionOf(db),
      texts: db.prepare("SELECT text FROM note ORDER BY id").pluck().all(),
      sound: db.pragma("integrity_check", { simple: true }),
    };
  } finally {
    db.close();
  }
}

const OLD = { version: 1, texts: ["sun", "moon"], sound: "ok" };
const NEW = { version: 3, texts: ["SUN", "MOON"], sound: "ok" };

describe("upgrade", () => {
  it("notifies its listener before and after the upgrade of an older file, and of no other", () => {
    const calls: string[] = [];
    const listener = {
      begins: () => calls.push(`begins at ${read(file).version}`),
      done: (words: string) => calls.push(words),
    };
    open(NOTES.slice(0, 1), listener);
    open(NOTES, listener);
    open(NOTES, listener);
    expect(calls).toEqual([
      "begins at 1",
      expect.stringMatching(
        /^upgraded the tables of the store from version 1 to 3 in \d+\.\d s; a copy of the file before is at .*notes\.db\.version-1$/,
      ),
    ]);
  });

  it("refuses a file from before the baseline and one of a newer version, and leaves them as they are", () => {
    writeFirst();
    expect(() => open(NOTES, {}, 2)).toThrow(expect.objectContaining({ code: "store_older", subject: file }));
    expect(read(file)).toEqual(OLD);
    open(NOTES);
    expect(() => open(NOTES.slice(0, 2))).toThrow(
      expect.objectContaining({ code: "store_newer", subject: file }),
    );
    expect(read(file)).toEqual(NEW);
  });

  it("runs the scripts behind the version of the file, counted from the baseline", () => {
    open(NOTES.slice(0, 1), {}, 7);
    expect(read(file).version).toBe(7);
    open(NOTES, {}, 7);
    expect(read(file).version).toBe(9);
    expect(read(copyOf(file, 7)).version).toBe(7);
  });

  it("makes a new file, and a current one stays as it is: neither is copied", () => {
    open(NOTES);
    open(NOTES);
    expect(read(file)).toEqual({ version: 3, texts: [], sound: "ok" });
    expect(readdirSync(folder)).toEqual(["notes.db"]);
  });

  it("keeps a copy of an older file for its owner alone, whole by itself, with what only its log held", () => {
    open(NOTES.slice(0, 1));
    // Its log is not copied back while this reader is there.
    const reader = new Database(file, { readonly: true });
    const begun = reader.prepare("SELECT * FROM note").iterate();
    begun.next();
    const db = new Database(file);
    db.exec("INSERT INTO note VALUES (1, 'sun'), (2, 'moon')");
    upgrade(db, { file, kind: "store", schema: { baseline: 1, scripts: NOTES } });
    db.close();
    begun.return?.();
    reader.close();
    expect(read(file)).toEqual(NEW);
    expect(read(copyOf(file, 1))).toEqual(OLD);
    expect(statSync(copyOf(file, 1)).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder).toSorted()).toEqual(["notes.db", "notes.db.version-1"]);
  });

  it("keeps one copy, of the version before, and touches no other file", () => {
    writeFirst();
    writeFileSync(`${file}.version-1.mine`, "");
    open(NOTES.slice(0, 2));
    expect(read(copyOf(file, 1))).toEqual(OLD);
    open(NOTES);
    expect(readdirSync(folder).toSorted()).toEqual([
      "notes.db",
      "notes.db.version-1.mine",
      "notes.db.version-2",
    ]);
    expect(read(copyOf(file, 2))).toMatchObject({ version: 2, texts: ["sun", "moon"] });
  });

  it("a step that fails leaves the old file and its copy, and the next attempt goes through", () => {
    writeFirst();
    expect(() => open([...NOTES.slice(0, 2), "UPDATE nowhere SET text = ''"])).toThrow("no such table");
    expect(read(file)).toEqual(OLD);
    expect(read(copyOf(file, 1))).toEqual(OLD);
    open(NOTES);
    expect(read(file)).toEqual(NEW);
  });

  it("a process killed in the middle leaves the old file and its copy, and the next one goes through", () => {
    writeFirst();
    const script = fileURLToPath(new URL("upgrade-crash.ts", import.meta.url));
    const { signal, stderr } = spawnSync(process.execPath, ["--no-warnings", script, file], {
      encoding: "utf8",
    });
    expect({ signal, stderr }).toEqual({ signal: "SIGKILL", stderr: "" });
    expect(read(file)).toEqual(OLD);
    expect(read(copyOf(file, 1))).toEqual(OLD);
    open(NOTES);
    expect(read(file)).toEqual(NEW);
  });

  it("goes on over what a copy that was cut off has left", () => {
    writeFirst();
    writeFileSync(`${copyOf(file, 1)}.partial`, "half of it");
    open(NOTES);
    expect(read(copyOf(file, 1))).toEqual(OLD);
    expect(readdirSync(folder)).not.toContain("notes.db.version-1.partial");
  });

  it("changes nothing where no copy can be made", () => {
    writeFirst();
    mkdirSync(copyOf(file, 1)); // what stands in the copy's place
    expect(() => open(NOTES)).toThrow("EISDIR");
    rmSync(copyOf(file, 1), { recursive: true });
    expect(read(file)).toEqual(OLD);
    expect(readdirSync(folder)).toEqual(["notes.db"]);
  });
});
