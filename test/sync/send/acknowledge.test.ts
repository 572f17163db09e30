import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { acknowledgeCreate } from "../../../src/sync/send/acknowledge.ts";
import type { CreateIntent } from "../../../src/sync/ledger/intents/creates.ts";
import { observedAt, openWorkshop, type Workshop } from "./fixture.ts";

let shop: Workshop;
let id: number;
beforeEach(async () => {
  shop = openWorkshop();
  id = await shop.write(() => shop.ledger.intents.create(shop.source.id, "key", 1, observedAt("a.md")));
});
afterEach(() => shop.close());

const acknowledge = async (docId: string, exact = true): Promise<ReturnType<typeof acknowledgeCreate>> => {
  const intent = shop.ledger.intents.creates(shop.source.id).find((each) => each.id === id) as CreateIntent;
  return await shop.write(() => acknowledgeCreate(shop.ledger, intent, docId, exact));
};
const rows = (): unknown[] => [...shop.ledger.files.all(shop.source.id)];
const doubts = (): unknown[] => shop.ledger.intents.doubts(shop.source.id);
const creates = (): unknown[] => shop.ledger.intents.creates(shop.source.id);

describe("acknowledged creates", () => {
  it("an acknowledged create gives its file a row and leaves nothing behind", async () => {
    expect(await acknowledge("made")).toBeUndefined();
    expect(rows()).toMatchObject([{ path: "a.md", docId: "made", state: "agreed" }]);
    expect([creates(), doubts()]).toEqual([[], []]);
  });

  it("an acknowledged create replaces the row's resource, and the previous one gets a delete", async () => {
    const row = await shop.add("a.md", "failed", "old");
    expect(await acknowledge("made")).toMatchObject({ path: "a.md", docId: "old" });
    expect(shop.get(row)).toMatchObject({ docId: "made", state: "agreed" });
    expect(shop.ledger.intents.deletes(shop.source.id)).toMatchObject([{ docId: "old" }]);
    expect([creates(), doubts()]).toEqual([[], []]);
  });

  it.each(["made", null])("an acknowledged create deletes nothing where the row has %s", async (docId) => {
    await shop.add("a.md", "failed", docId);
    expect(await acknowledge("made")).toBeUndefined();
    expect(rows()).toMatchObject([{ docId: "made", state: "agreed" }]);
    expect(shop.ledger.intents.deletes(shop.source.id)).toEqual([]);
  });

  it("an acknowledged create writes nothing where another file owns the resource", async () => {
    await shop.add("b.md", "agreed", "made");
    expect(await acknowledge("made")).toBe("taken");
    expect([rows().length, creates().length, doubts()]).toEqual([1, 1, []]);
  });

  it("an acknowledged create takes the resource of a file that is just getting another one", async () => {
    await shop.add("b.md", "agreed", "made");
    await shop.write(() => shop.ledger.intents.create(shop.source.id, "key", 1, observedAt("b.md")));
    expect(await acknowledge("made")).toBeUndefined();
    expect(rows()).toMatchObject([{ path: "a.md", docId: "made", state: "agreed" }]);
  });

  it.each([false, true])(
    "a create acknowledged by a resource that differs leaves its row unsure (row: %s)",
    async (has) => {
      if (has) await shop.add("a.md", "failed", null);
      await acknowledge("made", false);
      expect(rows()).toMatchObject([{ docId: "made", state: "unsure" }]);
      expect([creates(), doubts()]).toEqual([[], []]);
    },
  );
});
