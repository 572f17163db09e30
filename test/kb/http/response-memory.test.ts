import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { openResponseMemory } from "../../../src/kb/http/response-memory.ts";

const MB = 1024 * 1024;

/** Whether a promise is settled once what is due has been done. */
async function isDone(promise: Promise<unknown>): Promise<boolean> {
  let done = false;
  void promise.then(() => (done = true));
  await new Promise(setImmediate);
  return done;
}

let accounts = 0;
/** An account that asks for one answer alone. */
const another = (): string => `account ${(accounts += 1)}`;

describe("the room for answers", () => {
  it("is given as far as it goes, and again when an answer is over", () => {
    const room = openResponseMemory(10 * MB);
    const [first, second, third] = [room.open(another()), room.open(another()), room.open(another())];
    first.take(6 * MB);
    second.take(4 * MB);
    expect(() => third.take(MB)).toThrow("more than 10485760 bytes");
    first.release();
    first.release();
    third.take(6 * MB);
    // What a share had is not in its own way.
    third.take(5 * MB);
    expect(() => third.take(7 * MB)).toThrow("bytes");
  });

  it("is there for one answer alone however long, and for short ones always", () => {
    const room = openResponseMemory(MB);
    room.open(another()).take(50 * MB);
    expect(() => room.open(another()).take(MB)).toThrow("bytes");
    room.open(another()).take(64 * 1024);
  });

  it("counts what must be answered without refusing it", () => {
    const room = openResponseMemory(10 * MB);
    const change = room.open(another());
    room.open(another()).take(8 * MB);
    change.keep(8 * MB);
    expect(() => room.open(another()).take(MB)).toThrow("bytes");
    change.release();
    change.keep(8 * MB); // over: it holds nothing any more
    room.open(another()).take(2 * MB);
  });

  it("is waited for in order by each account, with nothing held meanwhile; an answer that is over waits no longer", async () => {
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

  it("is never all one account's: another's answer has room, and passes those that wait", async () => {
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

  it("is never given twice, nor lost", () => {
    const act = fc.record({
      who: fc.nat({ max: 4 }),
      what: fc.constantFrom("take", "keep", "wait", "release"),
      bytes: fc.integer({ min: 1, max: 12 }).map((mb) => mb * MB),
    } as const);
    fc.assert(
      fc.property(fc.array(act, { maxLength: 40 }), (acts) => {
        const room = openResponseMemory(10 * MB);
        const shares = Array.from({ length: 5 }, () => room.open(another()));
        const waiting = new Set<number>();
        for (const { who, what, bytes } of acts) {
          // A request that waits does nothing else than end.
          if (waiting.has(who) && what !== "release") continue;
          try {
            if (what === "wait") waiting.add(who);
            void shares[who]?.[what](bytes);
          } catch {
            // no room
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
