import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { openResponseMemory } from "../../../../src/kb/http/limits/response-memory.ts";

const MB = 1024 * 1024;

/** Reports whether a promise settles within this turn of the event loop. */
async function isDone(promise: Promise<unknown>): Promise<boolean> {
  let done = false;
  void promise.then(() => (done = true));
  await new Promise(setImmediate);
  return done;
}

let accounts = 0;
/** Returns a new account for a single answer. */
const another = (): string => `account ${(accounts += 1)}`;

describe("the memory for responses", () => {
  it("gives out memory up to the bound, and again after a response ends", () => {
    const room = openResponseMemory(10 * MB);
    const [first, second, third] = [room.open(another()), room.open(another()), room.open(another())];
    first.take(6 * MB);
    second.take(4 * MB);
    expect(() => third.take(MB)).toThrow("more than 10485760 bytes");
    first.release();
    first.release();
    third.take(6 * MB);
    // The bytes that a share already holds do not count against it.
    third.take(5 * MB);
    expect(() => third.take(7 * MB)).toThrow("bytes");
  });

  it("admits a single response of any length, and short ones always", () => {
    const room = openResponseMemory(MB);
    room.open(another()).take(50 * MB);
    expect(() => room.open(another()).take(MB)).toThrow("bytes");
    room.open(another()).take(64 * 1024);
  });

  it("the memory for responses counts responses that must be sent without refusing them", () => {
    const room = openResponseMemory(10 * MB);
    const change = room.open(another());
    room.open(another()).take(8 * MB);
    change.force(8 * MB);
    expect(() => room.open(another()).take(MB)).toThrow("bytes");
    change.release();
    change.force(8 * MB); // over: it holds nothing any more
    room.open(another()).take(2 * MB);
  });

  it("admits waiting responses of an account in order, holds nothing while they wait, and drops ended ones", async () => {
    const room = openResponseMemory(10 * MB);
    const [reader, first, second, third] = [room.open("r"), room.open("a"), room.open("a"), room.open("b")];
    reader.take(6 * MB);
    first.take(3 * MB);
    const waits = [first.wait(5 * MB), second.wait(MB), third.wait(5 * MB)];
    const done = () => Promise.all(waits.map(isDone));
    expect(await done()).toEqual([false, false, false]);
    room.open("c").take(4 * MB); // what the first one had, and what was free
    first.release();
    expect(await done()).toEqual([true, false, false]);
    reader.release();
    expect(await done()).toEqual([true, true, true]);
  });

  it("leaves memory for another account, whose response overtakes waiting ones", async () => {
    const room = openResponseMemory(100 * MB);
    const greedy = Array.from({ length: 20 }, () => room.open("greedy"));
    const given = greedy.filter((share) => {
      try {
        share.take(10 * MB);
        return true;
      } catch {
        return false;
      }
    });
    expect(given).toHaveLength(7);
    const late = room.open("greedy").wait(10 * MB);
    await room.open("other").wait(15 * MB);
    expect(await isDone(late)).toBe(false);
  });

  it("the memory for responses never gives out memory twice or loses it", () => {
    const act = fc.record({
      who: fc.nat({ max: 4 }),
      what: fc.constantFrom("take", "force", "wait", "release"),
      bytes: fc.integer({ min: 1, max: 12 }).map((mb) => mb * MB),
    } as const);
    fc.assert(
      fc.property(fc.array(act, { maxLength: 40 }), (acts) => {
        const room = openResponseMemory(10 * MB);
        const shares = Array.from({ length: 5 }, () => room.open(another()));
        const waiting = new Set<number>();
        for (const { who, what, bytes } of acts) {
          // A waiting request can only end.
          if (waiting.has(who) && what !== "release") continue;
          try {
            if (what === "wait") waiting.add(who);
            void shares[who]?.[what](bytes);
          } catch {
            // refused
          }
        }
        for (const share of shares) share.release();
        const all = room.open(another());
        all.take(6 * MB);
        room.open(another()).take(4 * MB);
        expect(() => room.open(another()).take(MB)).toThrow("bytes");
      }),
    );
  });
});
