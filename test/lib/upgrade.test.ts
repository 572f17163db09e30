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

/** Upgrades the file over a new connection. */
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
  it("an upgrade notifies its listener before and after it, and only for an older file", () => {
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

  it("an upgrade refuses a file from before the baseline and a newer one, and leaves them unchanged", () => {
    writeFirst();
    expect(() => open(NOTES, {}, 2)).toThrow(expect.objectContaining({ code: "store_older", subject: file }));
    expect(read(file)).toEqual(OLD);
    open(NOTES);
    expect(() => open(NOTES.slice(0, 2))).toThrow(
      expect.objectContaining({ code: "store_newer", subject: file }),
    );
    expect(read(file)).toEqual(NEW);
  });

  it("an upgrade runs the scripts after the file's version, counted from the baseline", () => {
    open(NOTES.slice(0, 1), {}, 7);
    expect(read(file).version).toBe(7);
    open(NOTES, {}, 7);
    expect(read(file).version).toBe(9);
    expect(read(copyOf(file, 7)).version).toBe(7);
  });

  it("an upgrade creates a new file and leaves a current one unchanged, and copies neither", () => {
    open(NOTES);
    open(NOTES);
    expect(read(file)).toEqual({ version: 3, texts: [], sound: "ok" });
    expect(readdirSync(folder)).toEqual(["notes.db"]);
  });

  it("an upgrade makes a private, self-contained copy of an older file, its log included", () => {
    open(NOTES.slice(0, 1));
    // This reader prevents a checkpoint of the log.
    const reader = new Database(file, { readonly: true });
    const started = reader.prepare("SELECT * FROM note").iterate();
    started.next();
    const db = new Database(file);
    db.exec("INSERT INTO note VALUES (1, 'sun'), (2, 'moon')");
    upgrade(db, { file, kind: "store", schema: { baseline: 1, scripts: NOTES } });
    db.close();
    started.return?.();
    reader.close();
    expect(read(file)).toEqual(NEW);
    expect(read(copyOf(file, 1))).toEqual(OLD);
    expect(statSync(copyOf(file, 1)).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder).toSorted()).toEqual(["notes.db", "notes.db.version-1"]);
  });

  it("an upgrade leaves one copy, of the previous version, and touches no other file", () => {
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

  it("a failed step leaves the old file and its copy, and the next attempt succeeds", () => {
    writeFirst();
    expect(() => open([...NOTES.slice(0, 2), "UPDATE nowhere SET text = ''"])).toThrow("no such table");
    expect(read(file)).toEqual(OLD);
    expect(read(copyOf(file, 1))).toEqual(OLD);
    open(NOTES);
    expect(read(file)).toEqual(NEW);
  });

  it("a process killed during an upgrade leaves the old file and its copy, and the next upgrade succeeds", () => {
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

  it("an upgrade overwrites the remains of an interrupted copy", () => {
    writeFirst();
    writeFileSync(`${copyOf(file, 1)}.partial`, "half of it");
    open(NOTES);
    expect(read(copyOf(file, 1))).toEqual(OLD);
    expect(readdirSync(folder)).not.toContain("notes.db.version-1.partial");
  });

  it("an upgrade changes nothing when the copy fails", () => {
    writeFirst();
    mkdirSync(copyOf(file, 1)); // what stands in the copy's place
    expect(() => open(NOTES)).toThrow("EISDIR");
    rmSync(copyOf(file, 1), { recursive: true });
    expect(read(file)).toEqual(OLD);
    expect(readdirSync(folder)).toEqual(["notes.db"]);
  });
});
