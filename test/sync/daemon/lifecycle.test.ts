import { beforeEach, describe, expect, it } from "vitest";
import { openLifecycle, type Lifecycle } from "../../../src/sync/daemon/lifecycle.ts";

let lifecycle: Lifecycle;
let holds: boolean;
beforeEach(() => {
  lifecycle = openLifecycle((error) => new Error(`in words: ${String(error)}`));
  holds = false;
});
const until = async (signal?: AbortSignal): Promise<void> => await lifecycle.until(() => holds, signal);
/** Whether a promise has ended within some turns of the loop. */
const hasEnded = async (promise: Promise<unknown>): Promise<boolean> => {
  let ended = false;
  const note = (): void => void (ended = true);
  promise.then(note, note);
  for (let turns = 0; turns < 3; turns += 1) await new Promise(setImmediate);
  return ended;
};

describe("a wait in a daemon", () => {
  it("resolves when the condition holds, at once or after a change", async () => {
    const waiting = until();
    lifecycle.changed();
    expect(await hasEnded(waiting)).toBe(false);
    holds = true;
    expect(await hasEnded(waiting)).toBe(false);
    lifecycle.changed();
    expect(await hasEnded(waiting)).toBe(true);
    await expect(until()).resolves.toBeUndefined();
  });

  it("ends a wait with the signal's reason, even without a change", async () => {
    const abort = new AbortController();
    const waiting = until(abort.signal);
    abort.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    await expect(until(abort.signal)).rejects.toThrow("enough");
    holds = true;
    await expect(until(abort.signal)).resolves.toBeUndefined();
  });

  it("ends a wait with the fatal error, past or future", async () => {
    const waiting = until();
    lifecycle.fail("no disk");
    await expect(waiting).rejects.toThrow("in words: no disk");
    holds = true;
    await expect(until()).rejects.toThrow("in words: no disk");
  });

  it("checks conditions again when the daemon starts to stop", async () => {
    const waiting = lifecycle.until(() => lifecycle.isEnding());
    lifecycle.end();
    await expect(waiting).resolves.toBeUndefined();
  });
});

describe("what ends a daemon", () => {
  it("takes only the first error for fatal, and notifies each listener once", () => {
    const notified: string[] = [];
    lifecycle.onFatal(({ message }) => notified.push(`one ${message}`));
    lifecycle.onFatal(({ message }) => notified.push(`two ${message}`));
    expect(lifecycle.fatal()).toBeUndefined();
    lifecycle.fail("first");
    lifecycle.fail("second");
    expect(lifecycle.fatal()?.message).toBe("in words: first");
    expect(notified).toEqual(["one in words: first", "two in words: first"]);
  });

  it("takes no error for fatal after the stop started", () => {
    lifecycle.end();
    lifecycle.fail("late");
    expect([lifecycle.fatal(), lifecycle.isEnding()]).toEqual([undefined, true]);
  });
});
