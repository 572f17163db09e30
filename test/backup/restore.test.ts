import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  clearStage,
  decideExchange,
  finishExchange,
  isExchangePending,
  stageFolder,
} from "../../src/backup/exchange.ts";
import { contentsOf, openBackupGround, type BackupGround } from "./fixture.ts";

let ground: BackupGround;
let target: string;
beforeEach(async () => {
  ground = openBackupGround();
  target = join(ground.base, "backup");
  ground.fill("first", ["a"]);
  await ground.backup(target);
});
afterEach(() => ground.end());

describe("a restore", () => {
  it("a restore into an empty state folder restores its content", () => {
    rmSync(ground.stateDir, { recursive: true });
    const { previousState, files } = ground.restore(target);
    expect([previousState, files]).toEqual([null, 3]);
    expect(ground.words()).toEqual({ ledger: "first", store: "first", uploads: ["a"] });
    expect(existsSync(join(ground.stateDir, "restore"))).toBe(false);
  });

  it("a restore refuses existing files without --force, and moves them to a folder with it", () => {
    ground.fill("second", ["b"]);
    expect(() => ground.restore(target)).toThrow(expect.objectContaining({ code: "restore_occupied" }));
    expect(ground.words().store).toBe("second");
    const { previousState } = ground.restore(target, { force: true });
    expect(ground.words()).toEqual({ ledger: "first", store: "first", uploads: ["a"] });
    expect(previousState).toBe(join(ground.stateDir, "before-restore-20260103T030405Z"));
    expect(readFileSync(join(previousState ?? "", "service", "uploads", "b"), "utf8")).toBe("bytes of b");
  });

  it("a restore leaves keys and other files of the state folder unchanged", () => {
    writeFileSync(join(ground.stateDir, "pauthkey"), "kb_key");
    ground.restore(target, { force: true });
    expect(readFileSync(join(ground.stateDir, "pauthkey"), "utf8")).toBe("kb_key");
  });

  const DAMAGES: readonly (readonly [string, (path: string) => void, string])[] = [
    ["a file is missing", (path) => rmSync(path), "missing"],
    ["a file is cut short", (path) => truncateSync(path, 3), "3 bytes, expected 10"],
    [
      "a byte is another one",
      (path) => {
        const bytes = readFileSync(path);
        bytes.writeUInt8(bytes.readUInt8(5) ^ 1, 5);
        writeFileSync(path, bytes);
      },
      "other bytes",
    ],
  ];

  it.each(DAMAGES)(
    "leaves an upload out and says so where in the backup %s",
    async (_name, damage, words) => {
      ground.fill("first", ["a", "b"]);
      await ground.backup(join(ground.base, "two"));
      damage(join(ground.base, "two", "service", "uploads", "a"));
      const { files, bytes, notRestored, manifest } = ground.restore(join(ground.base, "two"), {
        force: true,
      });
      expect(notRestored).toEqual([
        { path: "service/uploads/a", reason: expect.stringContaining(words) as string },
      ]);
      expect(ground.words()).toEqual({ ledger: "first", store: "first", uploads: ["b"] });
      const rest = manifest.files.filter(({ path }) => path !== "service/uploads/a");
      expect([files, bytes]).toEqual([3, rest.reduce((sum, file) => sum + file.bytes, 0)]);
    },
  );

  it.each(DAMAGES)("changes nothing when in the backup, of a database, %s", (_name, damage) => {
    for (const name of ["ledger.db", "service/kb.sqlite"]) {
      const saved = readFileSync(join(target, name));
      damage(join(target, name));
      const before = contentsOf(ground.stateDir);
      expect(() => ground.restore(target, { force: true })).toThrow(
        expect.objectContaining({ code: "backup_damaged", message: expect.stringContaining(name) }),
      );
      expect(contentsOf(ground.stateDir)).toEqual(before);
      writeFileSync(join(target, name), saved);
    }
  });

  it("a restore changes nothing when the restored files are damaged", () => {
    const before = contentsOf(ground.stateDir);
    const finding = { check: "x", level: "damage", subject: "s", message: "torn", remedy: "r" } as const;
    expect(() => ground.restore(target, { force: true, check: () => [finding] })).toThrow(/torn/);
    expect(contentsOf(ground.stateDir)).toEqual(before);
  });
});

describe("a crash within the exchange", () => {
  const ASIDE = "before-restore-20260103T030405Z";
  /** Small files replace databases, because the exchange opens none. */
  const OLD = [
    "ledger.db",
    "ledger.db-wal",
    "trash/t",
    "service/kb.sqlite",
    "service/kb.sqlite-shm",
    "service/uploads/b",
  ];
  const NEW = ["ledger.db", "service/kb.sqlite", "service/uploads/a"];

  function write(folder: string, names: readonly string[], text: string): void {
    for (const name of names) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
  }

  function filesOf(folder: string): Record<string, string> {
    const found = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
    return Object.fromEntries(
      found.map(({ parentPath, name }) => {
        const path = join(parentPath, name);
        return [relative(folder, path), readFileSync(path, "utf8")];
      }),
    );
  }

  /** A state folder of its own with a decided exchange. */
  function decided(name: string): string {
    const folder = join(ground.base, name);
    write(folder, OLD, "old");
    clearStage(folder);
    write(stageFolder(folder), NEW, "new");
    decideExchange(folder, ASIDE);
    return folder;
  }

  it("the next start completes an exchange interrupted at any step, and no old file is lost", () => {
    const steps: string[] = [];
    finishExchange(decided("whole"), (name) => steps.push(name));
    expect(steps.length).toBeGreaterThan(8);
    const whole = filesOf(join(ground.base, "whole"));
    expect(whole).toEqual({
      ...Object.fromEntries(NEW.map((name) => [name, "new"])),
      ...Object.fromEntries(OLD.map((name) => [join(ASIDE, name), "old"])),
    });
    for (const [at] of steps.entries()) {
      const folder = decided(`crashed-${at}`);
      let left = at;
      const crash = (): void => {
        if (left-- === 0) throw new Error("crash");
      };
      expect(() => finishExchange(folder, crash)).toThrow("crash");
      if (isExchangePending(folder)) finishExchange(folder);
      expect(filesOf(folder)).toEqual(whole);
    }
    // Each move is flushed to the disk, some hundred in all.
  }, 60_000);

  it("a crash before the decision leaves everything unchanged, and the next restore starts afresh", () => {
    clearStage(ground.stateDir);
    write(stageFolder(ground.stateDir), ["service/kb.sqlite"], "half");
    expect(isExchangePending(ground.stateDir)).toBe(false);
    ground.restore(target, { force: true });
    expect(ground.words()).toEqual({ ledger: "first", store: "first", uploads: ["a"] });
  });
});
