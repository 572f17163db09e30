import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { openTurns } from "../../src/lib/turns.ts";

describe("turns", () => {
  it("turns run the work of one key sequentially in the order of arrival, however long each takes", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(fc.record({ key: fc.constantFrom("a", "b"), fails: fc.boolean() }), { maxLength: 12 }),
        async (scheduler, works) => {
          const turns = openTurns();
          const started: Record<string, number[]> = { a: [], b: [] };
          const underWay = new Set<string>();
          const all = works.map(({ key, fails }, i) =>
            turns.run(key, async () => {
              expect(underWay.has(key)).toBe(false);
              underWay.add(key);
              started[key]?.push(i);
              await scheduler.schedule(Promise.resolve());
              underWay.delete(key);
              if (fails) throw new Error(`work ${i}`);
              return i;
            }),
          );
          const ended = Promise.allSettled(all);
          await scheduler.waitFor(ended);
          const results = await ended;
          expect(results.map(({ status }) => status === "rejected")).toEqual(works.map(({ fails }) => fails));
          for (const key of ["a", "b"]) {
            expect(started[key]).toEqual(works.flatMap((work, i) => (work.key === key ? [i] : [])));
          }
          expect(turns.size()).toBe(0);
        },
      ),
    );
  });

  it("turns of different keys run concurrently", async () => {
    const turns = openTurns();
    const first = Promise.withResolvers<void>();
    const waiting = turns.run("a", () => first.promise);
    expect(await turns.run("b", async () => "done")).toBe("done");
    first.resolve();
    await waiting;
  });
});
