import { expect, it } from "vitest";
import { bytesTag, fileTag } from "../../../src/sync/plan/marker.ts";
import {
  acknowledgedTag,
  CONVERTER_VERSION,
  EXTRACTOR_VERSION,
  hashesOf,
  hashOfTag,
  hasSameBytes,
  isHashOf,
  sentWith,
  versionsOf,
  withSent,
} from "../../../src/sync/plan/versions.ts";

const version = (file: string, bytes: string) => ({ file, bytes });
const read = { path: "a.md", hash: "hash", extractorVersion: 2 };
const TAG = bytesTag("hash", 2);

it("a row that a marker filled stands for the bytes and the format that the marker names", () => {
  const row = { hash: hashOfTag(TAG), extractorVersion: 0 };
  expect([hasSameBytes(read, row), acknowledgedTag(row)]).toEqual([true, TAG]);
  expect(hasSameBytes({ ...read, hash: "other" }, row)).toBe(false);
  expect(hasSameBytes({ ...read, extractorVersion: 3 }, row)).toBe(false);
});

it("a row that a read file filled stands for its bytes, and a row without a hash for none", () => {
  expect([hasSameBytes(read, read), hasSameBytes(read, { hash: "other" })]).toEqual([true, false]);
  expect([acknowledgedTag(read), acknowledgedTag({ hash: "", extractorVersion: 2 })]).toEqual([
    TAG,
    undefined,
  ]);
});

it("a history has each version once, the latest last, and forgets the oldest", () => {
  expect(versionsOf("")).toEqual([]);
  const [a, b] = [version("f", "a"), version("f", "b")];
  expect(versionsOf(withSent(withSent("", [a, b]), [a]))).toEqual([b, a]);
  const many = Array.from({ length: 20 }, (_, n) => version("f", `v${n}`));
  expect(versionsOf(withSent("", many))).toEqual(many.slice(-8));
});

it("a history of a change has the version before and the one that leaves", () => {
  const row = { sent: "", path: "old.md", hash: "before", extractorVersion: 2 };
  const before = version(fileTag("old.md"), bytesTag("before", 2));
  const next = version(fileTag("a.md"), TAG);
  expect(versionsOf(sentWith(row, read))).toEqual([before, next]);
  expect(versionsOf(sentWith({ ...row, hash: "" }, read))).toEqual([next]);
});

it("a hash of the ledger stands for its bytes, by their hash or by their tag in any version of the formats", () => {
  for (const hash of [
    "hash",
    ...[EXTRACTOR_VERSION, CONVERTER_VERSION].map((each) => hashOfTag(bytesTag("hash", each))),
  ]) {
    expect([isHashOf(hash, "hash"), isHashOf(hash, "other"), hashesOf("hash").includes(hash)]).toEqual([
      true,
      false,
      true,
    ]);
  }
  expect(isHashOf("", "hash")).toBe(false);
});
