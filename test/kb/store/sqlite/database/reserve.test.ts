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
  it("allocates four megabytes in the store's folder, readable by its owner alone", () => {
    open();
    expect(sizeBytes()).toBe(RESERVE_BYTES);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it("fills the reserve with bytes that no file system compresses", () => {
    open();
    const content = readFileSync(path);
    for (let at = 0; at < content.length; at += 4096) {
      expect(new Set(content.subarray(at, at + 4096)).size).toBeGreaterThan(200);
    }
  });

  it("frees the reserve and allocates it again after each release", () => {
    const reserve = open();
    for (let round = 0; round < 3; round++) {
      reserve.release();
      expect(sizeBytes()).toBeUndefined();
      reserve.refill();
      expect(sizeBytes()).toBe(RESERVE_BYTES);
    }
  });

  it("writes nothing if the reserve is allocated, even by an earlier process", () => {
    open();
    writeFileSync(path, Buffer.alloc(RESERVE_BYTES, "x"));
    open().refill();
    expect(readFileSync(path, { encoding: "latin1" }).startsWith("xxxx")).toBe(true);
  });

  it("completes a reserve that an earlier process left incomplete", () => {
    writeFileSync(path, Buffer.alloc(RESERVE_BYTES - 1));
    open();
    expect(sizeBytes()).toBe(RESERVE_BYTES);
  });

  it("a store does without a reserve, and throws nothing, if the folder cannot be written to", () => {
    const reserve = openReserve(join(folder, "missing", "kb.db"));
    expect(() => {
      reserve.refill();
      reserve.release();
    }).not.toThrow();
  });
});
