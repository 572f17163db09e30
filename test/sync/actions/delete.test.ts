import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type DeleteEnd, type DeleteOptions, sendDelete } from "../../../src/sync/actions/delete.ts";
import type { Deletion } from "../../../src/sync/ledger/intents.ts";
import type { Later, Reply } from "../../../src/sync/remote/answer.ts";
import type { Saved } from "../../../src/sync/trash/trash.ts";
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
beforeEach(() => {
  shop = openWorkshop();
  asked = [];
});
afterEach(() => shop.close());

interface Answers {
  readonly delete?: readonly Reply<unknown>[];
  /** What the service shows of the resource by its id. */
  readonly read?: Reply<{ isDeleted: boolean }>;
  /** Whether anything else is answered. */
  readonly isUp?: boolean;
  readonly keep?: readonly Saved[];
}

/** Sends the delete of `a.md` against a service that answers so, the last answer again and again. */
async function send(answers: Answers, intent: Deletion, options?: DeleteOptions): Promise<DeleteEnd> {
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
  return await sendDelete(context, shop.source, intent, options);
}

/** The intent of a delete, with what is to be kept `tries` times. */
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
  it("that is done leaves a tombstone, and is reported", async () => {
    expect(await send({}, await deletion())).toBe("done");
    expect([open(), shop.ledger.intents.isDeleted("doc"), asked]).toEqual([0, true, ["delete"]]);
    expect(shop.reports).toMatchObject([{ action: "delete", outcome: "done", docId: "doc", path: "a.md" }]);
  });

  it("of a resource beside the file's own is reported as that", async () => {
    await send({}, { ...(await deletion()), isSpare: true });
    expect(shop.reports).toMatchObject([{ action: "discard" }]);
  });

  it("of a resource beside the file's own is known as that after a restart, too", async () => {
    const intent = await deletion();
    await shop.add("a.md", "agreed", "another");
    await send({}, intent);
    expect(shop.reports).toMatchObject([{ action: "discard" }]);
  });

  it.each<[what: string, answers: Answers, requests: string[]]>([
    [
      "answered 404 three times is done",
      { delete: [GONE] },
      ["delete", "read", "delete", "read", "delete", "read"],
    ],
    [
      "answered 404 falsely is sent again",
      { delete: [GONE, DONE], read: { kind: "done", value: { isDeleted: false } } },
      ["delete", "read", "delete"],
    ],
    [
      "answered 404 is done at once where the service shows it as deleted",
      { delete: [GONE], read: { kind: "done", value: { isDeleted: true } } },
      ["delete", "read"],
    ],
    [
      "that is broken off is sent again",
      { delete: [later("service"), later("request"), DONE] },
      ["delete", "delete", "delete"],
    ],
  ])("%s", async (_what, answers, requests) => {
    expect(await send(answers, await deletion())).toBe("done");
    expect([open(), asked]).toEqual([0, requests]);
  });

  it.each([
    ["a moment ago is sent once more when it is known everywhere", 5000, 4],
    ["minutes ago is believed", 120_000, 3],
    ["by a clock that was ahead is believed", -5000, 3],
  ])("answered 404 for a resource made %s", async (_what, ageMs, deletes) => {
    const intent = await deletion();
    const made = { action: "create", outcome: "done", docId: "doc", durationMs: 1 } as const;
    const where = { source: shop.source.id, path: "a.md", from: undefined, message: undefined };
    await shop.write(() => shop.ledger.activity.add({ ...made, ...where, atMs: Date.now() - ageMs }));
    expect(await send({ delete: [GONE] }, intent)).toBe("done");
    expect(asked.filter((each) => each === "delete")).toHaveLength(deletes);
  });

  it.each<[what: string, answers: Answers, outcome: string, message: RegExp]>([
    ["that the service refuses stays, with its words", { delete: [REFUSED] }, "refused", /^not this one$/],
    [
      "of a resource that the service shows and cannot find stays",
      { delete: [GONE], read: { kind: "done", value: { isDeleted: false } } },
      "parked",
      /shows the resource/,
    ],
    [
      "that fails three times while the service answers otherwise stays",
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

  it("that 404s alone end stays open where these are not believed yet, and is reported as done once", async () => {
    const intent = await deletion();
    const gone = { delete: [GONE] };
    expect(await send({ delete: [REFUSED] }, intent)).toBe("refused");
    expect(await send(gone, intent, { believes: false })).toBe("denied");
    expect([open(), refused(), shop.ledger.intents.isDeleted("doc")]).toEqual([1, 0, true]);
    expect(await send(gone, intent, { believes: false, wasDenied: true })).toBe("denied");
    expect(await send(gone, intent, { wasDenied: true })).toBe("done");
    expect([open(), shop.ledger.intents.isDeleted("doc")]).toEqual([0, true]);
    expect(shop.reports.map(({ outcome }) => outcome)).toEqual(["refused", "done"]);
  });

  it.each<[what: string, answers: Answers]>([
    ["done", {}],
    ["the resource's own record", { delete: [GONE], read: { kind: "done", value: { isDeleted: true } } }],
  ])("that ends by %s is believed at once", async (_what, answers) => {
    expect(await send(answers, await deletion(), { believes: false })).toBe("done");
    expect(open()).toBe(0);
  });

  it("in a pause is neither sent nor given up", async () => {
    const intent = await deletion();
    shop.paused = true;
    expect(await send({}, intent)).toBe("left");
    expect([open(), refused(), asked, shop.reports]).toEqual([1, 0, [], []]);
  });
});

describe("a text that is to be kept before its delete", () => {
  it.each<[what: string, keep: Saved]>([
    ["is kept, then the resource goes", { kind: "done", value: undefined }],
    ["is gone, and the resource goes all the same", GONE],
  ])("%s", async (_what, kept) => {
    expect(await send({ keep: [kept] }, await deletion(2))).toBe("done");
    expect([open(), asked]).toEqual([0, ["save", "delete"]]);
  });

  it("is asked for only where it is to be", async () => {
    expect(await send({ keep: [GONE] }, await deletion(0))).toBe("done");
    expect(asked).toEqual(["delete"]);
  });

  it("and cannot be written leaves the resource for as long as that is so", async () => {
    const intent = await deletion(1);
    for (const times of [1, 2]) {
      expect(await send({ keep: [{ kind: "disk", message: "ENOSPC" }] }, intent)).toBe("refused");
      expect([open(), refused(), asked.length]).toEqual([1, 1, times]);
    }
    expect(shop.reports[0]).toMatchObject({
      outcome: "parked",
      message: "its text cannot be kept before it is deleted: ENOSPC",
    });
  });

  it("and is not given leaves the resource for some tries, then it goes without, which is reported", async () => {
    const intent = await deletion(3);
    const keep = [REFUSED];
    expect([
      await send({ keep }, intent),
      await send({ keep }, intent),
      await send({ keep }, intent),
    ]).toEqual(["refused", "refused", "done"]);
    expect(open()).toBe(0);
    expect(shop.reports.map(({ message }) => message)).toEqual([
      "its text cannot be kept before it is deleted: not this one; 2 more tries",
      "its text cannot be kept before it is deleted: not this one; 1 more try",
      "deleted without keeping its text: not this one",
    ]);
  });

  it("is asked for again when the answer fails, and counts as a try when that is the resource's own fault", async () => {
    const intent = await deletion(2);
    expect(await send({ keep: [later("service"), { kind: "done", value: undefined }] }, intent)).toBe("done");
    expect(asked).toEqual(["save", "save", "delete"]);
    asked.length = 0;
    const other = { ...(await deletion(2)) };
    expect(await send({ keep: [later("request")] }, other)).toBe("refused");
    expect(asked).toEqual(["save", "save", "save", "collections"]);
    expect(shop.reports.at(-1)?.message).toContain("busy; 1 more try");
  });

  it("is not asked for in a pause", async () => {
    const intent = await deletion(2);
    shop.paused = true;
    expect(await send({ keep: [REFUSED] }, intent)).toBe("left");
    expect([open(), refused(), asked]).toEqual([1, 0, []]);
  });
});
