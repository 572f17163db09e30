import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { inOrder } from "../../src/lib/in-order.ts";

const BOUNDS = { width: 3, weigh: () => 1, weightMax: Infinity };

async function* numbers(count: number, onRead: (at: number) => void = () => undefined) {
  for (let at = 0; at < count; at++) {
    onRead(at);
    yield at;
  }
}

describe("inOrder", () => {
  it("gives the results in the order of the pieces, whatever order they end in, and never more at once", () =>
    fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.integer({ min: 0, max: 12 }), async (scheduler, count) => {
        let running = 0;
        let most = 0;
        const results: number[] = [];
        const all = (async () => {
          for await (const result of inOrder(numbers(count), BOUNDS, async (piece) => {
            most = Math.max(most, ++running);
            await scheduler.schedule(Promise.resolve());
            running--;
            return piece;
          }))
            results.push(result);
        })();
        await scheduler.waitFor(all);
        expect(results).toEqual(Array.from({ length: count }, (_, at) => at));
        expect(most).toBeLessThanOrEqual(BOUNDS.width);
      }),
    ));

  it("reads no further than there is room for, by number and by weight", async () => {
    const read: number[] = [];
    const heavy = { width: 10, weigh: (piece: number) => (piece === 1 ? 100 : 1), weightMax: 50 };
    const { promise, resolve } = Promise.withResolvers<number>();
    const results = inOrder(
      numbers(9, (at) => read.push(at)),
      heavy,
      () => promise,
    );
    const first = results.next();
    // Nothing is done before it is let go, so that only reading goes on.
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    expect(read).toEqual([0, 1]);
    resolve(7);
    expect(await first).toEqual({ value: 7, done: false });
  });

  it("weighs a piece before the work that may take it apart", async () => {
    const read: number[] = [];
    async function* buffers() {
      for (const size of [100, 100, 100]) {
        read.push(size);
        yield new ArrayBuffer(size);
      }
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    const bounds = { width: 10, weigh: (piece: ArrayBuffer) => piece.byteLength, weightMax: 50 };
    const results = inOrder(buffers(), bounds, (piece) => {
      structuredClone(piece, { transfer: [piece] });
      return promise;
    });
    const first = results.next();
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    expect(read).toEqual([100]);
    resolve();
    await first;
  });

  it("gives a result while the next piece is long in coming", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    async function* slow() {
      yield 1;
      await promise;
      yield 2;
    }
    const results = inOrder(slow(), BOUNDS, async (piece) => piece);
    expect((await results.next()).value).toBe(1);
    resolve();
    expect((await results.next()).value).toBe(2);
    expect((await results.next()).done).toBe(true);
  });

  it("throws what the source throws, after the results before it", async () => {
    async function* broken() {
      yield 1;
      yield 2;
      throw new Error("broken off");
    }
    const seen: number[] = [];
    const results = inOrder(broken(), BOUNDS, async (piece) => {
      // Still under way when the source breaks.
      for (let turn = 0; turn < 20; turn++) await Promise.resolve();
      return piece;
    });
    await expect(
      (async () => {
        for await (const result of results) seen.push(result);
      })(),
    ).rejects.toThrow("broken off");
    expect(seen).toEqual([1, 2]);
  });
});
