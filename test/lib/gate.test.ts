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
