import * as fc from "fast-check";
import { expect, it } from "vitest";
import {
  appendShifted,
  eachPosting,
  lookUp,
  makeByteWriter,
  measured,
  writePosting,
} from "../../../../src/kb/index/words/postings.ts";

/** Gaps and numbers of occurrences around the lengths of their varints. */
const gap = fc.oneof(fc.nat(3), fc.constantFrom(30, 31, 32, 33, 4095, 4096, 600_000));
const times = fc.oneof(fc.integer({ min: 1, max: 6 }), fc.constantFrom(130, 131, 132, 20_000));
const postings = fc.array(fc.tuple(gap, times), { minLength: 1, maxLength: 150 }).map((list) => {
  let ordinal = -1;
  return list.map(([step, count]) => ({ ordinal: (ordinal += step + 1), times: count }));
});

type Posting = { readonly ordinal: number; readonly times: number };

function encode(list: readonly Posting[]): Buffer {
  const writer = makeByteWriter();
  let previous = -1;
  for (const each of list) {
    writePosting(writer, previous, each.ordinal, each.times);
    previous = each.ordinal;
  }
  return writer.take();
}

function decode(bytes: Uint8Array): Posting[] {
  const found: Posting[] = [];
  eachPosting(bytes, (ordinal, count) => found.push({ ordinal, times: count }));
  return found;
}

it("a list is read as it was written, with its number of postings and its last one", () => {
  fc.assert(
    fc.property(postings, (list) => {
      const bytes = encode(list);
      expect(decode(bytes)).toEqual(list);
      expect(measured(bytes)).toEqual({ bytes, count: list.length, last: list.at(-1)?.ordinal });
    }),
  );
  expect(measured(new Uint8Array())).toMatchObject({ count: 0, last: -1 });
});

it("a look-up finds the same occurrences as reading the whole list, also when it is repeated", () => {
  fc.assert(
    fc.property(postings, fc.array(fc.nat(300), { maxLength: 60 }), fc.boolean(), (list, others, isFew) => {
      const known = new Map(list.map((each) => [each.ordinal, each.times]));
      const picked = isFew ? list.filter((_, at) => at % 40 === 39) : list;
      // The one behind the end must not be taken for a posting.
      const behind = (list.at(-1)?.ordinal ?? 0) + 1;
      const wanted = [...new Set([...picked.map(({ ordinal }) => ordinal), ...others, behind])].toSorted(
        (a, b) => a - b,
      );
      const searched = measured(encode(list));
      for (let round = 0; round < 2; round++) {
        const found = new Uint32Array(wanted.length + 1).fill(7);
        lookUp(searched, Uint32Array.from(wanted), wanted.length, found);
        expect([...found]).toEqual([...wanted.map((ordinal) => known.get(ordinal) ?? 0), 7]);
      }
    }),
  );
});

it("a list that is appended to another one continues it", () => {
  fc.assert(
    fc.property(postings, postings, fc.nat(5000), (one, other, more) => {
      const shift = (one.at(-1)?.ordinal ?? 0) + 1 + more;
      const writer = makeByteWriter();
      const [first, second] = [encode(one), Buffer.concat([Buffer.of(9, 9), encode(other), Buffer.of(9)])];
      writer.bytes(first, 0, first.length);
      const range = { bytes: second, start: 2, end: second.length - 1 };
      appendShifted(writer, one.at(-1)?.ordinal ?? -1, range, shift);
      const shifted = other.map((each) => ({ ...each, ordinal: each.ordinal + shift }));
      expect(decode(writer.take())).toEqual([...one, ...shifted]);
    }),
  );
});

it("a writer keeps what it was given while it grows, and starts over when that was taken", () => {
  const writer = makeByteWriter();
  const long = Buffer.from(Array.from({ length: 5000 }, (_, at) => at % 251));
  writer.uint(0x01_02_03_04_05_06, 6);
  writer.bytes(long, 1, 4001);
  writer.bytes(long, 0, 32);
  writer.bytes(long, 0, 33);
  writer.varint(2 ** 32 - 1);
  expect(writer.length()).toBe(6 + 4000 + 32 + 33 + 5);
  const taken = writer.take();
  expect([taken.subarray(0, 6).toString("hex"), taken.subarray(-5).toString("hex")]).toEqual([
    "010203040506",
    "ffffffff0f",
  ]);
  expect(taken.subarray(6, -5)).toEqual(
    Buffer.concat([long.subarray(1, 4001), long.subarray(0, 32), long.subarray(0, 33)]),
  );
  writer.varint(127);
  writer.varint(128);
  expect([writer.length(), writer.take().toString("hex")]).toEqual([3, "7f8001"]);
  // What was taken is a copy.
  expect(taken.subarray(0, 6).toString("hex")).toBe("010203040506");
});
