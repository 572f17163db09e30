import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openUnanswered } from "../../../src/sync/identity/unanswered.ts";
import type { CreateIntent } from "../../../src/sync/ledger/intents/creates.ts";
import { bytesTag, fileTag, markedDescription } from "../../../src/sync/plan/marker.ts";
import { ResourceRecord } from "../../../src/wire/resource.ts";
import { observedAt, openWorkshop, type Workshop } from "../send/fixture.ts";

let shop: Workshop;
let lists: number;
let warnings: string[];
let checks: string[];
beforeEach(() => {
  shop = openWorkshop();
  lists = 0;
  warnings = [];
  checks = [];
});
afterEach(() => shop.close());

/** A resource that a list shows, by default as the create of the path made it. */
const record = (
  docId: string,
  path: string,
  more: { hash?: string; writer?: string; source?: string } = {},
): ResourceRecord => {
  const { hash = "hash", ...signature } = more;
  const marker = { ...shop.source.signature, ...signature, file: fileTag(path), bytes: bytesTag(hash, 1) };
  return ResourceRecord.parse({ _id: docId, title: path, description: markedDescription("d", marker) });
};

interface World {
  /** What each list shows; the last one repeats. "refused": the service refuses the list. */
  readonly shown: readonly (readonly ResourceRecord[] | "refused")[];
  /** The service's record of a resource that the list lacks. */
  readonly read?: unknown;
  readonly lagMs?: number;
  readonly once?: boolean;
}

/** Opens the settling of creates without an answer. */
function open({ shown, read, lagMs = 1000, once = false }: World): ReturnType<typeof openUnanswered> {
  const list = async (_scope: unknown, visit: (each: ResourceRecord) => void): Promise<unknown> => {
    const found = shown[Math.min(lists++, shown.length - 1)] ?? [];
    if (found === "refused")
      return await Promise.resolve({ kind: "refused", code: "no", message: "not you" });
    for (const each of found) visit(each);
    return await Promise.resolve({ kind: "done", value: { isPaged: false } });
  };
  const context = shop.context({
    remote: { list, read: async () => await Promise.resolve(read) },
    collections: { ask: async () => await Promise.resolve({ id: "c1" }), id: () => "c1" },
    random: () => 0,
    timing: { goneAgainMs: [], gatherMs: 1, listAgainMs: 1, retryMs: 1, missingAgainMs: [1] },
  });
  return openUnanswered({
    context,
    source: {
      ...shop.source,
      agenda: { ...shop.source.agenda, checkAgain: (path) => void checks.push(path) },
    },
    lagMs,
    once,
    signal: context.signal,
    onWarning: (error) => warnings.push(error.message),
  });
}

const create = async (path: string, metadataHash?: string): Promise<CreateIntent> => {
  const observed = { ...observedAt(path), ...(metadataHash !== undefined && { metadataHash }) };
  const id = await shop.write(() =>
    shop.ledger.intents.create(shop.source.id, `key of ${path}`, 1, observed),
  );
  return shop.ledger.intents.creates(shop.source.id).find((each) => each.id === id) as CreateIntent;
};
const openCreates = (): string[] => {
  shop.ledger.flush();
  return shop.ledger.intents.creates(shop.source.id).map(({ path }) => path);
};
const rows = (): unknown[] => [...shop.ledger.files.all(shop.source.id)];

describe("a create without an answer", () => {
  it("gives its file the resource that the first list shows", async () => {
    const settled = await open({ shown: [[record("made", "a.md")]] }).findCreated(await create("a.md"));
    expect([settled, lists, openCreates(), checks]).toEqual(["adopted", 1, [], []]);
    expect(rows()).toMatchObject([{ path: "a.md", docId: "made", state: "agreed" }]);
  });

  it("gives its file the resource that only the second list shows", async () => {
    const settled = await open({ shown: [[], [record("made", "a.md")]] }).findCreated(await create("a.md"));
    expect([settled, lists]).toEqual(["adopted", 2]);
  });

  it.each([
    [1000, 2],
    [0, 1],
  ])("had no effect that lists show, which may lag by %i ms, after %i of them", async (lagMs, count) => {
    expect(await open({ shown: [[]], lagMs }).findCreated(await create("a.md"))).toBe("absent");
    expect([lists, openCreates(), rows()]).toEqual([count, ["a.md"], []]);
  });

  it.each([
    ["there", "unclear"],
    ["gone", "absent"],
  ] as const)("counts lists that lack a resource that is %s: %s", async (is, result) => {
    await shop.add("b.md", "agreed", "of b");
    const read = { kind: "done", value: { isDeleted: is === "gone" } };
    expect(await open({ shown: [[]], read }).findCreated(await create("a.md"))).toBe(result);
  });

  it("takes nothing of another file, source or installation, and nothing that a row has", async () => {
    await shop.add("b.md", "agreed", "of b");
    const others = [
      record("of another file", "c.md"),
      record("of another source", "a.md", { source: "aaaaaaaa" }),
      record("of another installation", "a.md", { writer: "aaaaaaaa" }),
      record("of b", "a.md"),
    ];
    expect(await open({ shown: [others] }).findCreated(await create("a.md"))).toBe("absent");
    expect(rows()).toMatchObject([{ path: "b.md", docId: "of b" }]);
  });

  it("takes a resource with another version of its file, which is then sent", async () => {
    const settled = await open({ shown: [[record("made", "a.md", { hash: "older" })]] }).findCreated(
      await create("a.md"),
    );
    expect([settled, checks]).toEqual(["adopted", ["a.md"]]);
    expect(rows()).toMatchObject([{ docId: "made", state: "unsure" }]);
  });

  it.each([{ tags: ["other"] }, {}])(
    "takes a resource with other metadata than its file has, which is then sent: %o",
    async (metadata) => {
      const made = ResourceRecord.parse({ ...record("made", "a.md"), metadata });
      await open({ shown: [[made]] }).findCreated(await create("a.md", "of its own"));
      expect([rows(), checks]).toMatchObject([[{ docId: "made", state: "unsure" }], ["a.md"]]);
    },
  );

  it("of two resources takes that with its own version", async () => {
    const both = [record("older", "a.md", { hash: "older" }), record("made", "a.md")];
    await open({ shown: [both] }).findCreated(await create("a.md"));
    expect(rows()).toMatchObject([{ docId: "made", state: "agreed" }]);
  });

  it("shares its lists with others that ask at the same time", async () => {
    const unanswered = open({ shown: [[record("made", "a.md")]] });
    const [a, b] = [await create("a.md"), await create("b.md")];
    expect(await Promise.all([unanswered.findCreated(a), unanswered.findCreated(b)])).toEqual([
      "adopted",
      "absent",
    ]);
    expect(lists).toBe(2);
  });

  it("waits for as long as the service refuses its list, with one warning", async () => {
    const shown = ["refused", "refused", [record("made", "a.md")]] as const;
    expect(await open({ shown }).findCreated(await create("a.md"))).toBe("adopted");
    expect(warnings).toEqual([expect.stringContaining("refuses to list the collection c1")]);
  });

  it("ends a single pass if the service refuses its list", async () => {
    const unanswered = open({ shown: ["refused"], once: true });
    await expect(unanswered.findCreated(await create("a.md"))).rejects.toMatchObject({
      code: "list_refused",
    });
    expect(openCreates()).toEqual(["a.md"]);
  });
});
