import { beforeEach, describe, expect, it } from "vitest";
import { type Collections, openCollections } from "../../../src/sync/actions/collections.ts";
import type { Reply } from "../../../src/sync/remote/answer.ts";
import type { Remote } from "../../../src/sync/remote/remote.ts";
import type { Tier } from "../../../src/wire/primitives.ts";

type Answer = Awaited<ReturnType<Remote["collections"]>>;

const { signal } = new AbortController();
const named = (...ids: readonly (readonly [Tier, string])[]): Answer => ({
  kind: "done",
  value: new Map(ids),
});
const later = (blame: "service" | "key"): Reply<never> => ({
  kind: "later",
  acted: "no",
  blame,
  reason: "busy",
});

let stored: Map<Tier, string>;
let writes: number;
/** Writes that go to disk at once. */
let flushed: number;
let questions: number;
let reply: Answer;
let moved: Tier[];
const open = (configured: ReadonlyMap<Tier, string> = new Map()): Collections => {
  const collections = openCollections(
    {
      note: (write) => write(),
      write: async (write) => {
        flushed += 1;
        write();
        return await Promise.resolve();
      },
      sources: {
        collectionId: (tier) => stored.get(tier),
        setCollectionId: (tier, id) => {
          writes += 1;
          stored.set(tier, id);
        },
      },
    },
    {
      collections: async () => {
        questions += 1;
        return await Promise.resolve(reply);
      },
    },
    configured,
  );
  collections.onMoved((tier) => moved.push(tier));
  return collections;
};

beforeEach(() => {
  stored = new Map();
  writes = 0;
  flushed = 0;
  questions = 0;
  reply = named(["fastest", "c1"]);
  moved = [];
});

describe("a collection's id", () => {
  it("is that of the configuration, for which nothing is asked", async () => {
    const collections = open(new Map([["fastest", "c0"]]));
    expect(await collections.ask("fastest", signal)).toEqual({ id: "c0" });
    expect([collections.isConfigured("fastest"), collections.isConfigured("moderate")]).toEqual([
      true,
      false,
    ]);
    expect([questions, writes]).toEqual([0, 0]);
  });

  it("is asked for once, and written down", async () => {
    const collections = open();
    expect(collections.id("fastest")).toBeUndefined();
    expect(await collections.ask("fastest", signal)).toEqual({ id: "c1" });
    expect(await collections.ask("fastest", signal)).toEqual({ id: "c1" });
    expect([questions, writes, stored.get("fastest"), moved]).toEqual([1, 1, "c1", []]);
    stored.delete("fastest");
    expect(collections.id("fastest")).toBe("c1");
  });

  it("goes to disk at once when a create's answer is the first to tell it, and no flush is spent on it again", () => {
    const collections = open();
    collections.learn("fastest", "c1");
    collections.learn("fastest", "c1");
    expect([flushed, writes]).toEqual([1, 1]);
    open().learn("fastest", "c1");
    expect([flushed, writes]).toEqual([1, 2]);
  });

  it("is known from a former process", async () => {
    stored.set("fastest", "c1");
    expect(await open().ask("fastest", signal)).toEqual({ id: "c1" });
    expect(questions).toBe(0);
  });

  it("that a create names again is written once, and another one than before is reported", () => {
    stored.set("fastest", "c1");
    const collections = open();
    collections.learn("fastest", "c1");
    collections.learn("fastest", "c1");
    expect([writes, moved]).toEqual([1, []]);
    collections.learn("fastest", "c2");
    expect([writes, moved, collections.id("fastest")]).toEqual([2, ["fastest"], "c2"]);
    collections.learn("moderate", "c3");
    expect(moved).toEqual(["fastest"]);
  });

  it("is asked for again where the service does not know it any more", async () => {
    stored.set("fastest", "c1");
    reply = named(["fastest", "c2"]);
    const collections = open();
    expect(await collections.renew("fastest", signal)).toEqual({ id: "c2", isNamed: true });
    expect([questions, moved]).toEqual([1, ["fastest"]]);
    for (const nothing of [later("service"), named(["moderate", "c3"])]) {
      reply = nothing;
      expect(await collections.renew("fastest", signal)).toEqual({ id: "c2", isNamed: false });
    }
  });

  it("that the service has not among others is untold", async () => {
    expect(await open().ask("moderate", signal)).toEqual({ id: undefined, why: "unsupported" });
  });

  it.each<[string, Answer, string, number]>([
    [
      "that the service does not name is asked for once in ten minutes",
      { kind: "done", value: "unsupported" },
      "unsupported",
      1,
    ],
    [
      "for which something else may have answered is asked for once in a moment",
      { kind: "done", value: "unclear" },
      "unclear",
      1,
    ],
    ["for which the question itself is refused is unclear", later("key"), "unclear", 1],
    ["for which nobody answers is asked for each time", later("service"), "unanswered", 2],
  ])("%s", async (_what, answer, why, expected) => {
    reply = answer;
    const collections = open();
    expect(await collections.ask("fastest", signal)).toEqual({ id: undefined, why });
    expect(await collections.ask("fastest", signal)).toEqual({ id: undefined, why });
    expect(questions).toBe(expected);
  });
});

describe("creates of a tier", () => {
  /** Begins three creates; how many are on their way after each step of the first. */
  const creates = async (collections: Collections): Promise<number> => {
    let running = 0;
    let most = 0;
    const create = async (): Promise<void> => {
      running += 1;
      most = Math.max(most, running);
      for (let turns = 0; turns < 5; turns += 1) await new Promise(setImmediate);
      running -= 1;
    };
    await Promise.all([1, 2, 3].map(async () => await collections.guard("fastest", signal, create)));
    return most;
  };

  it("go one at a time as long as its id is unknown", async () => {
    reply = { kind: "done", value: "unsupported" };
    expect(await creates(open())).toBe(1);
  });

  it("go together when the service names the id", async () => {
    expect(await creates(open())).toBe(3);
    expect(questions).toBe(1);
  });

  it("go together when the configuration gives the id, without a question", async () => {
    expect(await creates(open(new Map([["fastest", "c0"]])))).toBe(3);
    expect(questions).toBe(0);
  });

  it("give what they come to", async () => {
    expect(await open().guard("fastest", signal, async () => await Promise.resolve("made"))).toBe("made");
    reply = { kind: "done", value: "unsupported" };
    expect(await open().guard("moderate", signal, async () => await Promise.resolve("made"))).toBe("made");
  });
});
