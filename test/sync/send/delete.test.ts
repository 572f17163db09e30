import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type DeleteEnd, sendDelete } from "../../../src/sync/send/delete.ts";
import type { Deletion } from "../../../src/sync/ledger/intents/deletes.ts";
import type { Later, Reply } from "../../../src/sync/send/remote/answer.ts";
import type { Saved } from "../../../src/sync/ledger/trash/trash.ts";
import { openWorkshop, type Workshop } from "./fixture.ts";

const DONE = { kind: "done", value: {} } as const;
const GONE = { kind: "gone" } as const;
const REFUSED = { kind: "refused", code: "c", message: "not this one" } as const;
const later = (blame: "request" | "service"): Later => ({
  kind: "later",
  acted: "no",
  blame,
  reason: "busy",
});

let shop: Workshop;
let asked: string[];
/** Comparisons that follow. */
let comparisons: number;
beforeEach(() => {
  shop = openWorkshop();
  asked = [];
  comparisons = 0;
});
afterEach(() => shop.close());

interface Answers {
  readonly delete?: readonly Reply<unknown>[];
  /** The service's record of the resource. */
  readonly read?: Reply<{ isDeleted?: boolean }>;
  /** Whether other requests are answered. */
  readonly isUp?: boolean;
  readonly keep?: readonly Saved[];
}

/** Sends the delete of `a.md` to a service that gives these answers and repeats the last one. */
async function send(answers: Answers, intent: Deletion): Promise<DeleteEnd> {
  const next = <T>(name: string, of: readonly T[]): T => {
    const count = asked.filter((each) => each === name).length;
    asked.push(name);
    const answer = of[Math.min(count, of.length - 1)];
    if (answer === undefined) throw new Error(`no answer to ${name}`);
    return answer;
  };
  const remote = {
    delete: async () => await Promise.resolve(next("delete", answers.delete ?? [DONE])),
    read: async () => await Promise.resolve(next("read", [answers.read ?? GONE])),
    collections: async () =>
      await Promise.resolve(next("collections", [answers.isUp === false ? later("service") : DONE])),
  };
  const trash = answers.keep && {
    tries: 2,
    save: async () => await Promise.resolve(next("save", answers.keep ?? [])),
  };
  shop.ledger.flush();
  const context = shop.context({ remote, trash, yieldSlot: async () => {} });
  const source = { ...shop.source, compareLater: () => void (comparisons += 1) };
  return await sendDelete(context, source, intent);
}

/** Adds the intent of a delete whose text is saved with `tries` attempts. */
const deletion = async (tries = 0): Promise<Deletion> => {
  const row = await shop.add("a.md", "agreed");
  const id = await shop.write(() => {
    const made = shop.ledger.intents.deleteFile(row, tries);
    shop.ledger.files.remove(row);
    return made;
  });
  return { id, path: "a.md", docId: "doc" };
};
const open = (): number => {
  shop.ledger.flush();
  return shop.ledger.intents.deletes(shop.source.id).length;
};
const refused = (): number => shop.ledger.sources.get(shop.source.id).deletesRefused;

describe("a delete", () => {
  it("a delete that is done leaves a tombstone, and is reported", async () => {
    expect(await send({}, await deletion())).toBe("done");
    expect([open(), shop.ledger.intents.isDeleted("doc"), asked]).toEqual([0, true, ["delete"]]);
    expect(shop.reports).toMatchObject([{ action: "delete", outcome: "done", docId: "doc", path: "a.md" }]);
  });

  it("a delete of a resource other than the file's own is reported as that", async () => {
    await send({}, { ...(await deletion()), isSpare: true });
    expect(shop.reports).toMatchObject([{ action: "discard" }]);
  });

  it("a delete of a resource other than the file's own is recognised after a restart, too", async () => {
    const intent = await deletion();
    await shop.add("a.md", "agreed", "another");
    await send({}, intent);
    expect(shop.reports).toMatchObject([{ action: "discard" }]);
  });

  it.each<[what: string, answers: Answers, requests: string[]]>([
    [
      "a delete answered 404 four times is done",
      { delete: [GONE] },
      ["delete", "read", "delete", "read", "delete", "read", "delete", "read"],
    ],
    [
      "a delete falsely answered 404 is sent again",
      { delete: [GONE, DONE], read: { kind: "done", value: { isDeleted: false } } },
      ["delete", "read", "delete"],
    ],
    [
      "a delete answered 404 is done at once if the service shows the resource as deleted",
      { delete: [GONE], read: { kind: "done", value: { isDeleted: true } } },
      ["delete", "read"],
    ],
    [
      "a delete answered 404 four times is done although the service shows the resource, not saying whether it is deleted",
      { delete: [GONE], read: { kind: "done", value: {} } },
      ["delete", "read", "delete", "read", "delete", "read", "delete", "read"],
    ],
    [
      "an interrupted delete is sent again",
      { delete: [later("service"), later("request"), DONE] },
      ["delete", "delete", "delete"],
    ],
  ])("%s", async (_what, answers, requests) => {
    expect(await send(answers, await deletion())).toBe("done");
    expect([open(), asked]).toEqual([0, requests]);
  });

  it.each<[what: string, answers: Answers, outcome: string, message: RegExp]>([
    ["a refused delete stays, with the service's words", { delete: [REFUSED] }, "refused", /^not this one$/],
    [
      "a delete of a resource that the service shows and cannot find stays",
      { delete: [GONE], read: { kind: "done", value: { isDeleted: false } } },
      "parked",
      /shows the resource/,
    ],
    [
      "a delete that fails three times while the service answers otherwise stays",
      { delete: [later("request")] },
      "parked",
      /^busy$/,
    ],
  ])("%s", async (_what, answers, outcome, message) => {
    expect(await send(answers, await deletion())).toBe("refused");
    expect([open(), refused(), shop.ledger.intents.isDeleted("doc")]).toEqual([1, 1, true]);
    expect(shop.reports).toMatchObject([
      { action: "delete", outcome, message: expect.stringMatching(message) as string },
    ]);
  });

  it("a delete that only 404s end is done, and a later list shows whether they were true", async () => {
    expect(await send({ delete: [GONE] }, await deletion())).toBe("done");
    expect([open(), shop.ledger.intents.isDeleted("doc"), comparisons]).toEqual([0, true, 1]);
    comparisons = 0;
    expect(await send({}, await deletion())).toBe("done");
    expect(comparisons).toBe(0);
  });

  it("a resource that a file has received since is not deleted, and nothing stays open", async () => {
    const intent = await deletion();
    await shop.add("b.md", "agreed", "doc");
    expect(await send({}, intent)).toBe("taken");
    expect([open(), asked, shop.state("b.md")]).toEqual([0, [], "agreed"]);
  });

  it("a delete during a pause is neither sent nor given up", async () => {
    const intent = await deletion();
    shop.paused = true;
    expect(await send({}, intent)).toBe("left");
    expect([open(), refused(), asked, shop.reports]).toEqual([1, 0, [], []]);
  });
});

describe("saving a text before its delete", () => {
  it.each<[what: string, keep: Saved]>([
    ["a text is saved, then the resource is deleted", { kind: "done", value: undefined }],
    ["a text that is gone does not prevent its delete", GONE],
  ])("%s", async (_what, retained) => {
    expect(await send({ keep: [retained] }, await deletion(2))).toBe("done");
    expect([open(), asked]).toEqual([0, ["save", "delete"]]);
  });

  it("a text is requested only if it must be saved", async () => {
    expect(await send({ keep: [GONE] }, await deletion(0))).toBe("done");
    expect(asked).toEqual(["delete"]);
  });

  it("a text that cannot be written keeps its resource until it can be", async () => {
    const intent = await deletion(1);
    for (const times of [1, 2]) {
      expect(await send({ keep: [{ kind: "disk", message: "ENOSPC" }] }, intent)).toBe("refused");
      expect([open(), refused(), asked.length]).toEqual([1, 1, times]);
    }
    expect(shop.reports[0]).toMatchObject({
      outcome: "parked",
      message: "its text cannot be saved before it is deleted: ENOSPC",
    });
  });

  it("a text that the service does not return keeps its resource for some attempts; then the resource is deleted without it, which is reported", async () => {
    const intent = await deletion(3);
    const keep = [REFUSED];
    expect([
      await send({ keep }, intent),
      await send({ keep }, intent),
      await send({ keep }, intent),
    ]).toEqual(["refused", "refused", "done"]);
    expect(open()).toBe(0);
    expect(shop.reports.map(({ message }) => message)).toEqual([
      "its text cannot be saved before it is deleted: not this one; 2 more tries",
      "its text cannot be saved before it is deleted: not this one; 1 more try",
      "deleted without saving its text: not this one",
    ]);
  });

  it("a text is requested again after a failure, which counts as an attempt if the resource itself is to blame", async () => {
    const intent = await deletion(2);
    expect(await send({ keep: [later("service"), { kind: "done", value: undefined }] }, intent)).toBe("done");
    expect(asked).toEqual(["save", "save", "delete"]);
    asked.length = 0;
    const other = { ...(await deletion(2)) };
    expect(await send({ keep: [later("request")] }, other)).toBe("refused");
    expect(asked).toEqual(["save", "save", "save", "collections"]);
    expect(shop.reports.at(-1)?.message).toContain("busy; 1 more try");
  });

  it("a text is not requested during a pause", async () => {
    const intent = await deletion(2);
    shop.paused = true;
    expect(await send({ keep: [REFUSED] }, intent)).toBe("left");
    expect([open(), refused(), asked]).toEqual([1, 0, []]);
  });
});
