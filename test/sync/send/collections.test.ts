import { beforeEach, describe, expect, it } from "vitest";
import { type Collections, openCollections } from "../../../src/sync/send/collections.ts";
import type { Reply } from "../../../src/sync/send/remote/answer.ts";
import type { Remote } from "../../../src/sync/send/remote/remote.ts";
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
/** Number of immediate writes to disk. */
let flushed: number;
let questions: number;
let reply: Answer;
/** The service accepts the key with other requests. */
let isKeyTaken: boolean;
let moved: Tier[];
const open = (): Collections => {
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
      read: async () => await Promise.resolve(isKeyTaken ? { kind: "gone" } : later("key")),
    },
  );
  collections.onMoved((tier) => moved.push(tier));
  return collections;
};

beforeEach(() => {
  stored = new Map();
  writes = 0;
  flushed = 0;
  questions = 0;
  isKeyTaken = true;
  reply = named(["fastest", "c1"]);
  moved = [];
});

describe("collection ids", () => {
  it("a collection's id is requested once, and stored", async () => {
    const collections = open();
    expect(collections.id("fastest")).toBeUndefined();
    expect(await collections.ask("fastest", signal)).toEqual({ id: "c1" });
    expect(await collections.ask("fastest", signal)).toEqual({ id: "c1" });
    expect([questions, writes, stored.get("fastest"), moved]).toEqual([1, 1, "c1", []]);
    stored.delete("fastest");
    expect(collections.id("fastest")).toBe("c1");
  });

  it("a collection's id is written to disk at once when a create's answer is the first to contain it, and costs no further flush", () => {
    const collections = open();
    collections.learn("fastest", "c1");
    collections.learn("fastest", "c1");
    expect([flushed, writes]).toEqual([1, 1]);
    open().learn("fastest", "c1");
    expect([flushed, writes]).toEqual([1, 2]);
  });

  it("a collection's id is known from a former process", async () => {
    stored.set("fastest", "c1");
    expect(await open().ask("fastest", signal)).toEqual({ id: "c1" });
    expect(questions).toBe(0);
  });

  it("a collection's id in further answers is written once, and a change of it is reported", () => {
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

  it("a collection's id is requested again if the service no longer knows it", async () => {
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

  it("a collection that the service does not name among others is unsupported", async () => {
    expect(await open().ask("moderate", signal)).toEqual({ id: undefined, why: "unsupported" });
  });

  it.each<[string, Answer, string, number]>([
    [
      "an id that the service does not name is requested once in ten minutes",
      { kind: "done", value: "unsupported" },
      "unsupported",
      1,
    ],
    [
      "an id that something else may have answered for is requested each time",
      { kind: "done", value: "unclear" },
      "unclear",
      2,
    ],
    ["an id whose request alone is refused is requested each time", later("key"), "unclear", 2],
    ["an id that nothing answers for is requested each time", later("service"), "unanswered", 2],
  ])("%s", async (_what, answer, why, expected) => {
    reply = answer;
    const collections = open();
    expect(await collections.ask("fastest", signal)).toEqual({ id: undefined, why });
    expect(await collections.ask("fastest", signal)).toEqual({ id: undefined, why });
    expect(questions).toBe(expected);
  });

  it("nothing answers for an id while the service refuses the key", async () => {
    reply = later("key");
    isKeyTaken = false;
    expect(await open().ask("fastest", signal)).toEqual({ id: undefined, why: "unanswered" });
  });
});
