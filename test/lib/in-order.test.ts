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
  it("inOrder yields results in the order of the items, regardless of the order they finish in, within its width", () =>
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

  it("inOrder reads the source only within its limits of number and weight", async () => {
    const read: number[] = [];
    const heavy = { width: 10, weigh: (piece: number) => (piece === 1 ? 100 : 1), weightMax: 50 };
    const { promise, resolve } = Promise.withResolvers<number>();
    const results = inOrder(
      numbers(9, (at) => read.push(at)),
      heavy,
      () => promise,
    );
    const first = results.next();
    // No work finishes before it is released, so that only reading continues.
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    expect(read).toEqual([0, 1]);
    resolve(7);
    expect(await first).toEqual({ value: 7, done: false });
  });

  it("inOrder weighs an item before its work starts", async () => {
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

  it("inOrder yields a result while the next item is still pending", async () => {
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

  it("inOrder throws the source's error after the results before it", async () => {
    async function* broken() {
      yield 1;
      yield 2;
      throw new Error("broken off");
    }
    const seen: number[] = [];
    const results = inOrder(broken(), BOUNDS, async (piece) => {
      // Still in flight when the source fails.
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
