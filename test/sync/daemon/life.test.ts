import { beforeEach, describe, expect, it } from "vitest";
import { beginLife, type Life } from "../../../src/sync/daemon/life.ts";

let life: Life;
let holds: boolean;
beforeEach(() => {
  life = beginLife((error) => new Error(`in words: ${String(error)}`));
  holds = false;
});
const until = async (signal?: AbortSignal): Promise<void> => await life.until(() => holds, signal);
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
    life.changed();
    expect(await hasEnded(waiting)).toBe(false);
    holds = true;
    expect(await hasEnded(waiting)).toBe(false);
    life.changed();
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
    life.fail("no disk");
    await expect(waiting).rejects.toThrow("in words: no disk");
    holds = true;
    await expect(until()).rejects.toThrow("in words: no disk");
  });

  it("asks again when the daemon is to end", async () => {
    const waiting = life.until(() => life.isEnding());
    life.end();
    await expect(waiting).resolves.toBeUndefined();
  });
});

describe("what ends a daemon", () => {
  it("is the first error alone, of which each listener is notified once", () => {
    const notified: string[] = [];
    life.onFatal(({ message }) => notified.push(`one ${message}`));
    life.onFatal(({ message }) => notified.push(`two ${message}`));
    expect(life.fatal()).toBeUndefined();
    life.fail("first");
    life.fail("second");
    expect(life.fatal()?.message).toBe("in words: first");
    expect(notified).toEqual(["one in words: first", "two in words: first"]);
  });

  it("is no error once it was asked to end", () => {
    life.end();
    life.fail("late");
    expect([life.fatal(), life.isEnding()]).toEqual([undefined, true]);
  });
});
