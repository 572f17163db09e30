import Database from "better-sqlite3";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MANIFEST_NAME, readManifest } from "../../src/backup/manifest.ts";
import { openBackupGround, type BackupGround } from "./fixture.ts";

let ground: BackupGround;
let target: string;
beforeEach(() => {
  ground = openBackupGround();
  target = join(ground.base, "backup");
});
afterEach(() => ground.end());

describe("a backup", () => {
  it("a backup holds both databases and the files that rows refer to, with hashes in its manifest", async () => {
    ground.fill("first", ["a", "b"]);
    const report = await ground.backup(target);
    expect(report).toMatchObject({ path: target, files: 4, missing: [] });
    const manifest = readManifest(target);
    expect(manifest).toMatchObject({ format: 1, kbsync: "0.0.0-test", madeAt: "2026-01-02T03:04:05.678Z" });
    expect(manifest.files.map(({ path }) => path)).toEqual([
      "ledger.db",
      "service/kb.sqlite",
      "service/uploads/a",
      "service/uploads/b",
    ]);
    for (const { path, sha256, bytes } of manifest.files) {
      const found = readFileSync(join(target, path));
      expect([found.length, createHash("sha256").update(found).digest("hex")]).toEqual([bytes, sha256]);
    }
    expect(statSync(target).mode & 0o077).toBe(0);
  });

  it("a backup shares no bytes with the original", async () => {
    ground.fill("first", ["a"]);
    await ground.backup(target);
    appendFileSync(join(ground.stateDir, "service", "uploads", "a"), " and more");
    expect(readFileSync(join(target, "service", "uploads", "a"), "utf8")).toBe("bytes of a");
    expect(statSync(join(target, "service", "uploads", "a")).mode & 0o777).toBe(0o600);
  });

  it("a backup is a snapshot while another connection writes", async () => {
    ground.fill("first");
    const store = join(ground.stateDir, "service", "kb.sqlite");
    const writer = new Database(store);
    writer.exec("CREATE TABLE pair (one INTEGER, two INTEGER); INSERT INTO pair VALUES (0, 0)");
    const change = writer.prepare("UPDATE pair SET one = one + 1, two = two + 1");
    writer.exec(`CREATE TABLE bulk AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000)
      SELECT i, randomblob(100) AS filler FROM n`);
    const ended = new AbortController();
    const backup = ground.backup(target).finally(() => ended.abort());
    while (!ended.signal.aborted) {
      change.run();
      await new Promise(setImmediate);
    }
    await backup;
    writer.close();
    const copy = new Database(join(target, "service", "kb.sqlite"), { readonly: true });
    const pair = copy.prepare<[], { one: number; two: number }>("SELECT * FROM pair").get();
    expect(pair?.one).toBe(pair?.two);
    expect(copy.pragma("integrity_check", { simple: true })).toBe("ok");
    copy.close();
    expect(existsSync(join(target, "service", "kb.sqlite-wal"))).toBe(false);
  });

  it("a backup lists missing and altered files, and holds the rest", async () => {
    ground.fill("first", ["a", "b", "c", "d"]);
    const uploads = join(ground.stateDir, "service", "uploads");
    rmSync(join(uploads, "a"));
    writeFileSync(join(uploads, "b"), "other bytes");
    renameSync(join(uploads, "d"), join(uploads, "incoming", "d"));
    const { missing } = await ground.backup(target);
    expect(missing.map(({ path }) => path)).toEqual(["service/uploads/a", "service/uploads/b"]);
    expect(readdirSync(join(target, "service", "uploads")).toSorted()).toEqual(["c", "d"]);
  });

  it("a backup gets a folder of its own inside an existing folder", async () => {
    ground.fill("first");
    mkdirSync(target);
    expect((await ground.backup(target)).path).toBe(join(target, "kbsync-20260102T030405Z"));
  });

  it("a backup does not replace another one", async () => {
    ground.fill("first");
    await ground.backup(target);
    await expect(ground.backup(target)).rejects.toMatchObject({ code: "backup_exists" });
  });

  it("refuses to back up an empty state folder", async () => {
    await expect(ground.backup(target)).rejects.toMatchObject({ code: "backup_nothing" });
    expect(existsSync(target)).toBe(false);
  });

  it("a backup that fails, is stopped or finds damage leaves nothing behind", async () => {
    ground.fill("first", ["a"]);
    const finding = {
      check: "x",
      level: "damage",
      subject: "s",
      message: "torn",
      remedy: "mend it",
    } as const;
    const damagedParts = ground.parts().map((part) => Object.assign(part, { check: () => [finding] }));
    await expect(ground.backup(target, { parts: damagedParts })).rejects.toMatchObject({
      code: "backup_damaged",
      hint: "mend it",
    });
    await expect(ground.backup(target, { signal: AbortSignal.abort() })).rejects.toThrow(/abort/);
    expect(readdirSync(ground.base)).toEqual(["state"]);
  });

  it("removes the remains of a killed backup, but not those of a running one", async () => {
    ground.fill("first");
    // No process has this pid: it exceeds the maximum of Linux.
    mkdirSync(join(ground.base, "old.partial-4194305"));
    mkdirSync(join(ground.base, `other.partial-${process.ppid}`));
    await ground.backup(target);
    expect(readdirSync(ground.base).toSorted()).toEqual(["backup", `other.partial-${process.ppid}`, "state"]);
  });
});

describe("an invalid backup is refused", () => {
  it.each([
    ["without a manifest", undefined, "backup_invalid"],
    ["with half a manifest", '{"format": 1, "fi', "backup_invalid"],
    ["of a later format", '{"format": 2}', "backup_newer"],
    [
      "that leads out of the folder",
      JSON.stringify({
        format: 1,
        kbsync: "1",
        madeAt: "x",
        stateDir: "/",
        files: [{ path: "service/uploads/../../../x", bytes: 1, sha256: "0".repeat(64) }],
        missing: [],
      }),
      "backup_invalid",
    ],
  ])("refuses a backup %s", (_name, text, code) => {
    mkdirSync(target);
    if (text !== undefined) writeFileSync(join(target, MANIFEST_NAME), text);
    expect(() => readManifest(target)).toThrow(expect.objectContaining({ code }));
  });
});
