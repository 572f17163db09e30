import { describe, expect, it } from "vitest";
import { packSentences } from "../../../../src/kb/index/sentence-codes.ts";
import { quantize } from "../../../../src/kb/index/quantized.ts";
import { rowOf, rowsOfScope, scopeOfRow } from "../../../../src/kb/index/rows.ts";
import { mergeParts } from "../../../../src/kb/index/words/merge.ts";
import { termsOf } from "../../../../src/kb/index/words/part.ts";
import { makeRemoved } from "../../../../src/kb/index/words/removed.ts";
import { openRun, makeTermFilter } from "../../../../src/kb/index/words/run.ts";
import { encodeSegment, openSegment } from "../../../../src/kb/index/words/segment.ts";
import { hashOf } from "../../../../src/kb/index/words/term-hash.ts";

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

// A store holds all of these: another format is another version of the store, and needs an upgrade.
describe("the stored form of the index", () => {
  it("keeps the hashes of terms", () => {
    expect(["", "a", "tide", "moon", "東京"].map(hashOf)).toEqual([
      47_071_214_353_493, 7_285_006_242_078, 4_870_091_338_105, 38_418_483_682_386, 12_211_091_375_710,
    ]);
  });

  it("keeps segments and runs", () => {
    const { data, words } = encodeSegment(["tide tide moon", "", "moon moon moon moon moon"]);
    expect([words, hex(data)]).toEqual([
      [3, 0, 5],
      "030003000000050000000202046de810717922f100129c52000100040100070180c5bbb1",
    ]);
    const part = openSegment(data, 7);
    const merge = mergeParts([{ part, removed: makeRemoved(part) }]);
    const step = merge.next();
    const page = Buffer.from("046de81071790100010122f100129c52020203000701d73a6dbe", "hex");
    expect(step).toEqual({ done: false, value: [page] });
    const { value, done } = merge.next();
    expect(done).toBe(true);
    const head = {
      rows: 3,
      first: 7,
      sequences: Buffer.from("070000000800000009000000a1a07bdf", "hex"),
      lengths: Buffer.from("0300000005004a212748", "hex"),
      directory: Buffer.from("046de81071790000195d66fd", "hex"),
      filter: Buffer.from("4b02ae80d6575e", "hex"),
    };
    expect(value).toEqual(head);
    const lists = [...termsOf(openRun(head, () => [page]))];
    expect(lists.map(([hash, { bytes, count, last }]) => [hash, hex(bytes), count, last])).toEqual([
      [hashOf("tide"), "01", 1, 0],
      [hashOf("moon"), "000701", 2, 2],
    ]);
  });

  it("keeps the ends of long lists in four bytes", () => {
    const words = Array.from({ length: 70_000 }, (_, at) => `w${at}`);
    const { data } = encodeSegment([words.join(" ")]);
    // One row: its number, its length, the number of terms, and then the bytes of an end.
    expect(hex(data.subarray(0, 8))).toBe("01ffff0001117004");
    const part = openSegment(data, 0);
    for (const word of ["w0", "w65536", "w69999"]) expect(part.list(hashOf(word))?.count).toBe(1);
    expect(part.list(hashOf("w70000"))).toBeUndefined();
  });

  it("keeps filters of terms, vectors and the vectors of sentences", () => {
    expect(hex(makeTermFilter(Float64Array.of(hashOf("tide"), hashOf("moon"))))).toBe("4b02ae");
    expect(hex(quantize(Float32Array.of(1, -0.5, 0)))).toBe("0402013c7fc100");
    const sentences = [Float32Array.of(1, -0.5, 0), Float32Array.of(0, 0, 0)];
    expect(hex(packSentences(sentences))).toBe("2549123e5f880000803f8888");
  });

  it("keeps the row numbers of scopes", () => {
    expect([rowOf(3, 5), scopeOfRow(rowOf(3, 2 ** 32 - 1))]).toEqual([3 * 2 ** 32 + 5, 3]);
    expect(rowsOfScope(1)).toEqual({ first: 2 ** 32, last: 2 ** 33 - 1 });
  });
});
