import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openReserve } from "../../../../../src/kb/store/sqlite/database/reserve.ts";

const RESERVE_BYTES = 4 * 1024 * 1024;
let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-reserve-"));
  path = join(folder, "kb.db-reserve");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const open = () => openReserve(join(folder, "kb.db"));
const sizeBytes = (): number | undefined => statSync(path, { throwIfNoEntry: false })?.size;

describe("the reserve of a store", () => {
  it("takes four megabytes beside the store, readable by its owner alone", () => {
    open();
    expect(sizeBytes()).toBe(RESERVE_BYTES);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it("holds bytes that no file system compresses", () => {
    open();
    const content = readFileSync(path);
    for (let at = 0; at < content.length; at += 4096) {
      expect(new Set(content.subarray(at, at + 4096)).size).toBeGreaterThan(200);
    }
  });

  it("gives the space back, and takes it again as often as it is released", () => {
    const reserve = open();
    for (let round = 0; round < 3; round++) {
      reserve.release();
      expect(sizeBytes()).toBeUndefined();
      reserve.refill();
      expect(sizeBytes()).toBe(RESERVE_BYTES);
    }
  });

  it("writes nothing where it is taken already, also by the program before", () => {
    open();
    writeFileSync(path, Buffer.alloc(RESERVE_BYTES, "x"));
    open().refill();
    expect(readFileSync(path, { encoding: "latin1" }).startsWith("xxxx")).toBe(true);
  });

  it("takes all of it where the program before took only a part", () => {
    writeFileSync(path, Buffer.alloc(RESERVE_BYTES - 1));
    open();
    expect(sizeBytes()).toBe(RESERVE_BYTES);
  });

  it("does without where the folder cannot be written to, and says nothing", () => {
    const reserve = openReserve(join(folder, "missing", "kb.db"));
    expect(() => {
      reserve.refill();
      reserve.release();
    }).not.toThrow();
  });
});
