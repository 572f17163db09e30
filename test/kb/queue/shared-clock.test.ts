import { afterEach, describe, expect, it } from "vitest";
import { openSharedClock, type SharedClock } from "../../../src/kb/queue/shared-clock.ts";

describe("the clock of the database", () => {
  let clock: SharedClock;
  afterEach(() => clock.close());
  const problems: unknown[] = [];
  const machine = { wallMs: 1000, elapsedMs: 0 };
  const clocks = { wall: () => machine.wallMs, elapsed: () => machine.elapsedMs };
  const pass = (ms: number): void => {
    machine.wallMs += ms;
    machine.elapsedMs += ms;
  };

  it("the clock of the database is that of an answer, which took some time, and goes on between measurements", async () => {
    clock = await openSharedClock(
      () => {
        pass(40);
        return Promise.resolve(500_000);
      },
      (error) => problems.push(error),
      clocks,
    );
    expect(clock.nowMs()).toBe(500_020);
    pass(100);
    expect(clock.nowMs()).toBe(500_120);
  });

  it("keeps the last measurement when an answer is late or fails, and is at first that of the machine", async () => {
    const answers = [
      () => Promise.reject(new Error("away")),
      () => Promise.resolve(machine.wallMs + 60_000),
      () => {
        pass(1001);
        return Promise.resolve(0);
      },
    ];
    clock = await openSharedClock(
      () => answers.shift()?.() ?? Promise.reject(new Error("no further answer")),
      (error) => problems.push(error),
      clocks,
    );
    expect(clock.nowMs()).toBe(machine.wallMs);
    expect(problems).toHaveLength(1);
    await clock.measure();
    await clock.measure();
    expect(clock.nowMs()).toBe(machine.wallMs + 60_000);
  });
});
