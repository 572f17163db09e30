import { afterEach, beforeEach, expect, it } from "vitest";
import type { Outgoing } from "../../../src/sync/actions/prepare.ts";
import { send } from "../../../src/sync/actions/send.ts";
import type { CreateIntent } from "../../../src/sync/ledger/intents/creates.ts";
import { observedAt, openWorkshop, type Workshop } from "./fixture.ts";

/** Another source's create shows the collection's id, so nothing leaves before the list. */

let shop: Workshop;
beforeEach(() => {
  shop = openWorkshop();
});
afterEach(() => shop.close());

/** Sends a create of `a.md`, and returns how often its source is to be compared with the list. */
async function sendHeldBack(intent: CreateIntent): Promise<number> {
  let comparisons = 0;
  const context = shop.context({
    collections: { guard: async () => await Promise.resolve(false) },
  });
  const source = { ...shop.source, compareLater: () => (comparisons += 1) };
  const outgoing = { intent, observed: intent.observed } as unknown as Outgoing; // What is used of it.
  await send(context, source, outgoing);
  shop.ledger.flush();
  return comparisons;
}

it("compares with the list again when an earlier attempt of a create that does not leave may have made a resource", async () => {
  const { intents } = shop.ledger;
  await shop.write(() => {
    intents.doubt(intents.create(shop.source.id, "key", 1, observedAt("a.md")), null);
  });
  const resumed = await shop.write(() => intents.revive(shop.source.id, observedAt("a.md")));
  if (resumed === undefined) throw new Error("no such doubt");
  expect(intents.doubts(shop.source.id)).toEqual([]);
  expect(await sendHeldBack(resumed)).toBe(1);
  expect(intents.doubts(shop.source.id)).toMatchObject([{ path: "a.md", attempts: 2 }]);
  expect(shop.checks).toEqual(["a.md"]);
});

it("forgets a create that has never left", async () => {
  const { intents } = shop.ledger;
  await shop.write(() => intents.create(shop.source.id, "key", 1, observedAt("a.md")));
  const [intent] = intents.creates(shop.source.id);
  if (intent === undefined) throw new Error("no create");
  expect(await sendHeldBack(intent)).toBe(0);
  expect(intents.allOpen()).toEqual([]);
  expect(shop.checks).toEqual(["a.md"]);
});
