import { Readable } from "node:stream";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bytesOf, openByteBlock } from "../../src/lib/byte-block.ts";

/** Sends single bytes in one reused buffer: code that stores pieces instead of copying them garbles them. */
function* oneByOne(bytes: Uint8Array): Generator<Uint8Array> {
  const piece = new Uint8Array(1);
  for (const byte of bytes) {
    piece[0] = byte;
    yield piece;
  }
}

describe("openByteBlock", () => {
  it("a block holds the added bytes up to its exact limit and drops them beyond it", () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 20 }), { maxLength: 20 }),
        fc.nat({ max: 200 }),
        fc.nat({ max: 300 }),
        (pieces, bytesMax, expectedBytes) => {
          const whole = Buffer.concat(pieces);
          const block = openByteBlock(bytesMax, expectedBytes);
          for (const _again of [1, 2]) {
            for (const piece of pieces) block.add(piece);
            expect(block.addedBytes()).toBe(whole.length);
            expect(block.take()).toEqual(whole.length > bytesMax ? undefined : whole);
          }
        },
      ),
    );
  });

  it("a block takes at most twice its bytes and never more than the limit, however short the pieces are", () => {
    const block = openByteBlock(100_000);
    for (const piece of oneByOne(new Uint8Array(70_000).fill(7))) block.add(piece);
    const taken = block.take() ?? Buffer.alloc(0);
    expect(taken).toEqual(Buffer.alloc(70_000, 7));
    expect(taken.buffer.byteLength).toBeLessThanOrEqual(100_000);
  });

  it("a block allocates for received bytes, not for announced ones, and ends at the announced size", () => {
    const announced = openByteBlock(1e9, 1e9);
    announced.add(Buffer.from("a"));
    expect(announced.take()?.buffer.byteLength).toBe(64 * 1024);
    const exact = openByteBlock(1e9, 80_000);
    for (const piece of [60_000, 20_000]) exact.add(Buffer.alloc(piece));
    expect(exact.take()?.buffer.byteLength).toBe(80_000);
    const bounded = openByteBlock(100_000, 1e12);
    for (const piece of [60_000, 40_000]) bounded.add(Buffer.alloc(piece));
    expect(bounded.take()?.buffer.byteLength).toBe(100_000);
  });
});

describe("bytesOf", () => {
  it("reads a whole stream, or resolves with undefined as soon as it exceeds the limit", async () => {
    const text = Buffer.from("The moon pulls the sea.");
    const pieces = Array.from(text, (byte) => Buffer.of(byte));
    expect(await bytesOf(Readable.from(pieces, { objectMode: false }), text.length)).toEqual(text);
    const endless = new Readable({ read: () => setImmediate(() => endless.push("a")) });
    expect(await bytesOf(endless, 10)).toBeUndefined();
    endless.destroy();
  });

  it("rejects for a stream that ends early or has already ended", async () => {
    const broken = new Readable({ read: () => undefined });
    broken.push("half");
    const reading = bytesOf(broken, 100);
    broken.destroy();
    await expect(reading).rejects.toMatchObject({ code: "ERR_STREAM_PREMATURE_CLOSE" });
    await expect(bytesOf(broken, 100)).rejects.toMatchObject({ code: "ERR_STREAM_PREMATURE_CLOSE" });
  });
});
