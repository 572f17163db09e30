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

describe("who waits for something in a daemon", () => {
  it("goes on when it holds, at once or after a change", async () => {
    const waiting = until();
    lifecycle.changed();
    expect(await hasEnded(waiting)).toBe(false);
    holds = true;
    expect(await hasEnded(waiting)).toBe(false);
    lifecycle.changed();
    expect(await hasEnded(waiting)).toBe(true);
    await expect(until()).resolves.toBeUndefined();
  });

  it("ends with the signal's reason, though nothing changes", async () => {
    const abort = new AbortController();
    const waiting = until(abort.signal);
    abort.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    await expect(until(abort.signal)).rejects.toThrow("enough");
    holds = true;
    await expect(until(abort.signal)).resolves.toBeUndefined();
  });

  it("ends with what ended the daemon, be it over or not", async () => {
    const waiting = until();
    lifecycle.fail("no disk");
    await expect(waiting).rejects.toThrow("in words: no disk");
    holds = true;
    await expect(until()).rejects.toThrow("in words: no disk");
  });

  it("asks again when the daemon is to end", async () => {
    const waiting = lifecycle.until(() => lifecycle.isEnding());
    lifecycle.end();
    await expect(waiting).resolves.toBeUndefined();
  });
});

describe("what ends a daemon", () => {
  it("is the first error alone, of which each listener is notified once", () => {
    const notified: string[] = [];
    lifecycle.onFatal(({ message }) => notified.push(`one ${message}`));
    lifecycle.onFatal(({ message }) => notified.push(`two ${message}`));
    expect(lifecycle.fatal()).toBeUndefined();
    lifecycle.fail("first");
    lifecycle.fail("second");
    expect(lifecycle.fatal()?.message).toBe("in words: first");
    expect(notified).toEqual(["one in words: first", "two in words: first"]);
  });

  it("is no error once it was asked to end", () => {
    lifecycle.end();
    lifecycle.fail("late");
    expect([lifecycle.fatal(), lifecycle.isEnding()]).toEqual([undefined, true]);
  });
});
