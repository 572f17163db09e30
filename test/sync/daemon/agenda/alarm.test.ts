import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openAlarm } from "../../../../src/sync/daemon/agenda/agenda.ts";

describe("the alarm of a loop", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** An alarm by the clock of the timers, which starts at 0, and when its loop woke. */
  function open() {
    const beganMs = performance.now();
    const now = (): number => performance.now() - beganMs;
    const alarm = openAlarm(now);
    const rangMs: number[] = [];
    const wait = (): void => void alarm.fires().then(() => rangMs.push(now()));
    return { alarm, rangMs, wait };
  }

  it("an alarm fires at the earliest of the times that were set, once", async () => {
    const { alarm, rangMs, wait } = open();
    for (const atMs of [500, 300, 400]) alarm.set(atMs);
    wait();
    await vi.advanceTimersByTimeAsync(299);
    expect(rangMs).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(rangMs).toEqual([300]);
    wait();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(rangMs).toEqual([300]);
  });

  it("an alarm can be set again after it has fired", async () => {
    const { alarm, rangMs, wait } = open();
    alarm.set(100);
    wait();
    await vi.advanceTimersByTimeAsync(100);
    alarm.set(250);
    wait();
    await vi.advanceTimersByTimeAsync(150);
    expect(rangMs).toEqual([100, 250]);
  });

  it("an alarm fires at once for a past time", async () => {
    const { alarm, rangMs, wait } = open();
    await vi.advanceTimersByTimeAsync(50);
    alarm.set(20);
    wait();
    await vi.advanceTimersByTimeAsync(0);
    expect(rangMs).toEqual([50]);
  });

  it("a loop that waits later receives the alarm, once", async () => {
    const { alarm, rangMs, wait } = open();
    alarm.set(10);
    await vi.advanceTimersByTimeAsync(30);
    wait();
    await vi.advanceTimersByTimeAsync(0);
    expect(rangMs).toEqual([30]);
    wait();
    await vi.advanceTimersByTimeAsync(1000);
    expect(rangMs).toEqual([30]);
  });

  it("an alarm is not late when the clock of the times is set forward", async () => {
    let aheadMs = 0;
    const beganMs = performance.now();
    const alarm = openAlarm(() => performance.now() - beganMs + aheadMs);
    alarm.set(60_000);
    aheadMs = 3_600_000;
    // By the new clock this is in a second, and before the timer that was set.
    alarm.set(3_601_000);
    let fired = false;
    void alarm.fires().then(() => (fired = true));
    await vi.advanceTimersByTimeAsync(1000);
    expect(fired).toBe(true);
  });

  it("an alarm fires when it is stopped, and has no timer from then on", async () => {
    const { alarm, rangMs, wait } = open();
    alarm.set(60_000);
    wait();
    alarm.stop();
    await vi.advanceTimersByTimeAsync(0);
    expect(rangMs).toEqual([0]);
    alarm.set(10);
    expect(vi.getTimerCount()).toBe(0);
  });
});
