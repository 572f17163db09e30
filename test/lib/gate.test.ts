import { setImmediate } from "node:timers/promises";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { openGate } from "../../src/lib/gate.ts";

describe("a gate", () => {
  it("never lets more in than its width, keeps the order, and refuses beyond its line", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.integer({ min: 1, max: 3 }),
        fc.integer({ min: 0, max: 4 }),
        fc.array(fc.boolean(), { maxLength: 12 }),
        async (scheduler, width, line, fails) => {
          const gate = openGate(width, line, () => new Error("full"));
          const begun: number[] = [];
          const ended = Promise.allSettled(
            fails.map((failing, i) =>
              gate.run(async () => {
                begun.push(i);
                expect(gate.running()).toBeLessThanOrEqual(width);
                await scheduler.schedule(Promise.resolve());
                if (failing) throw new Error("failed");
              }),
            ),
          );
          expect(gate.waiting()).toBeLessThanOrEqual(line);
          await scheduler.waitFor(ended);
          const results = await ended;
          const entered = Math.min(fails.length, width + line);
          expect(begun).toEqual(Array.from({ length: entered }, (_, i) => i));
          expect(results.slice(entered)).toEqual(
            results.slice(entered).map(() => ({ status: "rejected", reason: new Error("full") })),
          );
          expect([gate.running(), gate.waiting()]).toEqual([0, 0]);
        },
      ),
    );
  });

  it("lets in what weighs no more than there is room for, in order, and alone what weighs more than all", async () => {
    const gate = openGate(10, 9, () => new Error("full"));
    const begun: string[] = [];
    const ends = new Map<string, () => void>();
    const enter = (name: string, weight: number, signal?: AbortSignal) =>
      gate.run(
        async () => {
          begun.push(name);
          await new Promise<void>((resolve) => ends.set(name, resolve));
        },
        signal,
        weight,
      );
    const leaving = new AbortController();
    const all = [enter("six", 6), enter("huge", 1000, leaving.signal), enter("four", 4), enter("five", 5)];
    const settled = Promise.allSettled(all);
    await Promise.resolve();
    // The light ones do not pass the heavy one, which would wait for ever.
    expect([begun, gate.running(), gate.waiting()]).toEqual([["six"], 6, 3]);
    leaving.abort(new Error("left"));
    await expect(all[1]).rejects.toThrow("left");
    expect([begun, gate.running(), gate.waiting()]).toEqual([["six", "four"], 10, 1]);
    ends.get("four")?.();
    await all[2];
    expect([gate.running(), gate.waiting()]).toEqual([6, 1]);
    const huge = enter("huge", 1000);
    ends.get("six")?.();
    await all[0];
    await setImmediate();
    expect([begun, gate.running(), gate.waiting()]).toEqual([["six", "four", "five"], 5, 1]);
    ends.get("five")?.();
    await all[3];
    await setImmediate();
    expect([begun.at(-1), gate.running()]).toEqual(["huge", 10]);
    ends.get("huge")?.();
    await Promise.all([huge, settled]);
    expect(gate.running()).toBe(0);
  });

  it("lets whoever gives up leave the line, and nobody else", async () => {
    const gate = openGate(1, 2, () => new Error("full"));
    const held = Promise.withResolvers<void>();
    const begun: string[] = [];
    const enter = (name: string, signal?: AbortSignal) =>
      gate.run(async () => {
        begun.push(name);
        await held.promise;
      }, signal);
    const leaving = new AbortController();
    const first = enter("first", leaving.signal);
    const second = enter("second", leaving.signal);
    const third = enter("third");
    await expect(enter("too many")).rejects.toThrow("full");
    leaving.abort(new Error("left"));
    await expect(second).rejects.toThrow("left");
    expect([gate.running(), gate.waiting()]).toEqual([1, 1]);
    await expect(enter("gone before", leaving.signal)).rejects.toThrow("left");
    const fourth = enter("fourth");
    held.resolve();
    await Promise.all([first, third, fourth]);
    expect(begun).toEqual(["first", "third", "fourth"]);
    expect([gate.running(), gate.waiting()]).toEqual([0, 0]);
  });
});
