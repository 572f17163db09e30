import { setImmediate } from "node:timers/promises";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { openGate } from "../../src/lib/gate.ts";

const full = (): Error => new Error("full");

describe("openGate", () => {
  it("a gate runs at most its width, in order, and refuses tasks beyond its queue", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.integer({ min: 1, max: 3 }),
        fc.integer({ min: 0, max: 4 }),
        fc.array(fc.boolean(), { maxLength: 12 }),
        async (scheduler, width, line, fails) => {
          const gate = openGate({ width, lineMax: line, full });
          const started: number[] = [];
          const ended = Promise.allSettled(
            fails.map((failing, i) =>
              gate.run(async () => {
                started.push(i);
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
          expect(started).toEqual(Array.from({ length: entered }, (_, i) => i));
          expect(results.slice(entered)).toEqual(
            results.slice(entered).map(() => ({ status: "rejected", reason: new Error("full") })),
          );
          expect([gate.running(), gate.waiting()]).toEqual([0, 0]);
        },
      ),
    );
  });

  it("a gate runs the tasks of one path by rank, but every fourth is the lowest", async () => {
    const gate = openGate({ width: 1, lineMax: 9, full });
    const started: string[] = [];
    const run = (rank: number, name = String(rank)) =>
      gate.run(async () => void started.push(name), { path: ["account"], rank });
    await Promise.all([run(0, "first"), run(1), run(3), run(5), run(4), run(2), run(5, "5 again")]);
    expect(started).toEqual(["first", "5", "5 again", "4", "1", "3", "2"]);
  });

  it("a gate runs weighted tasks in order as they fit, and a task heavier than its width alone", async () => {
    const gate = openGate({ width: 10, lineMax: 9, full });
    const started: string[] = [];
    const ends = new Map<string, () => void>();
    const enter = (name: string, weight: number, signal?: AbortSignal) =>
      gate.run(
        async () => {
          started.push(name);
          await new Promise<void>((resolve) => ends.set(name, resolve));
        },
        { signal, weight },
      );
    const leaving = new AbortController();
    const all = [enter("six", 6), enter("huge", 1000, leaving.signal), enter("four", 4), enter("five", 5)];
    const settled = Promise.allSettled(all);
    await Promise.resolve();
    // Light tasks do not overtake the heavy one, which could starve.
    expect([started, gate.running(), gate.waiting()]).toEqual([["six"], 6, 3]);
    leaving.abort(new Error("left"));
    await expect(all[1]).rejects.toThrow("left");
    expect([started, gate.running(), gate.waiting()]).toEqual([["six", "four"], 10, 1]);
    ends.get("four")?.();
    await all[2];
    expect([gate.running(), gate.waiting()]).toEqual([6, 1]);
    const huge = enter("huge", 1000);
    ends.get("six")?.();
    await all[0];
    await setImmediate();
    expect([started, gate.running(), gate.waiting()]).toEqual([["six", "four", "five"], 5, 1]);
    ends.get("five")?.();
    await all[3];
    await setImmediate();
    expect([started.at(-1), gate.running()]).toEqual(["huge", 10]);
    ends.get("huge")?.();
    await Promise.all([huge, settled]);
    expect(gate.running()).toBe(0);
  });

  it("an aborted task leaves the queue of a gate, and no other task does", async () => {
    const gate = openGate({ width: 1, lineMax: 2, full });
    const held = Promise.withResolvers<void>();
    const started: string[] = [];
    const enter = (name: string, signal?: AbortSignal) =>
      gate.run(
        async () => {
          started.push(name);
          await held.promise;
        },
        { signal },
      );
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
    expect(started).toEqual(["first", "third", "fourth"]);
    expect([gate.running(), gate.waiting()]).toEqual([0, 0]);
  });

  /** A gate on a clock of its own. Each task takes a given time and records its name. */
  function openClocked(options: { width: number; guests?: number; shareMax?: number }) {
    let nowMs = 0;
    const ends: { atMs: number; end: () => void }[] = [];
    const started: { name: string; atMs: number }[] = [];
    const gate = openGate({ lineMax: 1000, full, nowMs: () => nowMs, ...options });
    return {
      started,
      run: (name: string, costMs: number, path: readonly string[]) =>
        gate.run(
          async () => {
            started.push({ name, atMs: nowMs });
            await new Promise<void>((end) => ends.push({ atMs: nowMs + costMs, end }));
          },
          { path },
        ),
      pass: async () => {
        await setImmediate();
        while (ends.length > 0) {
          ends.sort((a, b) => a.atMs - b.atMs);
          const next = ends.shift();
          nowMs = next?.atMs ?? nowMs;
          next?.end();
          await setImmediate();
        }
      },
    };
  }

  it("a gate shares time equally among accounts, however much one has queued and however long its work takes", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 20, maxLength: 60 }),
        fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 10 }),
        async (flood, few) => {
          const { started, run, pass } = openClocked({ width: 1 });
          const all = [
            ...flood.map((costMs) => run("flood", costMs, ["a"])),
            ...few.map((costMs) => run("few", costMs, ["b"])),
          ];
          await pass();
          await Promise.all(all);
          // Before its n-th task ends, the other account got at most the same time plus one task.
          let ownMs = 0;
          for (const { atMs } of started.filter(({ name }) => name === "few")) {
            expect(atMs - ownMs).toBeLessThanOrEqual(ownMs + 2 * 100);
            ownMs += few.shift() ?? 0;
          }
        },
      ),
    );
  });

  it("a gate shares an account's time equally among its owners, and keeps the order of each", async () => {
    const { started, run, pass } = openClocked({ width: 1 });
    const all = ["a1", "a2", "a3"].map((name) => run(name, 10, ["x", "a"]));
    all.push(run("b1", 10, ["x", "b"]), run("y1", 10, ["y", "c"]), run("y2", 10, ["y", "c"]));
    await pass();
    await Promise.all(all);
    expect(started.map(({ name }) => name)).toEqual(["a1", "y1", "b1", "y2", "a2", "a3"]);
  });

  it("a gate gives an account no credit for idle time", async () => {
    const { started, run, pass } = openClocked({ width: 1 });
    const first = Array.from({ length: 10 }, () => run("early", 10, ["a"]));
    await pass();
    const late = [
      ...Array.from({ length: 5 }, () => run("a", 10, ["a"])),
      ...Array.from({ length: 5 }, () => run("b", 10, ["b"])),
    ];
    await pass();
    await Promise.all([...first, ...late]);
    const names = started.slice(10).map(({ name }) => name);
    expect(names.slice(0, 4).filter((name) => name === "a")).toHaveLength(2);
  });

  it("a gate runs one guest at once while long work of others takes its width", async () => {
    const { started, run, pass } = openClocked({ width: 2, guests: 1 });
    const all = ["long1", "long2", "long3"].map((name) => run(name, 180_000, ["a"]));
    all.push(run("quick1", 1, ["b"]), run("quick2", 1, ["b"]), run("other", 1, ["c"]));
    await pass();
    await Promise.all(all);
    expect(started.slice(0, 5)).toEqual([
      { name: "long1", atMs: 0 },
      { name: "long2", atMs: 0 },
      { name: "quick1", atMs: 0 },
      { name: "other", atMs: 1 },
      { name: "quick2", atMs: 2 },
    ]);
  });

  it("a gate refuses tasks beyond an account's share of the queue, and accepts those of others", async () => {
    const { run, pass } = openClocked({ width: 1, shareMax: 2 });
    const all = [run("a", 1, ["a"]), run("a", 1, ["a"]), run("a", 1, ["a"])];
    await expect(run("a", 1, ["a"])).rejects.toThrow("full");
    all.push(run("b", 1, ["b"]));
    await pass();
    await Promise.all(all);
  });
});
