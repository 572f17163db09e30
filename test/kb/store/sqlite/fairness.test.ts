import { expect, it } from "vitest";
import { openSqliteStore } from "../../../../src/kb/store/sqlite/open.ts";
import { openFixture } from "../store-fixture.ts";

/** Calls of the hostile account in flight. */
const MANY = 60;
/** A text of many chunks. */
const LONG = Array.from({ length: 1500 }, (_, at) => `tide moon harbour crane ${at % 40} bread rent`).join(
  "\n\n",
);

const fixture = openFixture(openSqliteStore);
const create = (accountId: string, content: string) => fixture.create(content, { accountId });

/** Starts many calls, then one of another account; returns how many of the many end before the other. */
async function endedBefore(many: () => Promise<unknown>, other: () => Promise<unknown>): Promise<number> {
  let ended = 0;
  const started = Array.from({ length: MANY }, () => many().then(() => (ended += 1)));
  await started[0];
  await other();
  const before = ended;
  await Promise.all(started);
  return before;
}

it("a search does not wait for the searches of another account", async () => {
  const hostile = await fixture.store.records.ensureAccount("hostile reader");
  const victim = await fixture.store.records.ensureAccount("reader");
  const search = async (accountId: string): Promise<void> => {
    const collections = await fixture.store.records.collections(accountId);
    const collectionId = collections.find(({ tier }) => tier === "fastest")?.id ?? "";
    await fixture.store.index.evidence({
      scope: { accountId, collectionId, ownerId: "ann" },
      lexical: { query: "tide moon harbour crane bread rent", limit: 100 },
      nearest: undefined,
      depth: 100,
      withChunks: true,
    });
  };
  await create(hostile.id, LONG);
  await create(victim.id, "The tide.");
  expect(
    await endedBefore(
      () => search(hostile.id),
      () => search(victim.id),
    ),
  ).toBeLessThan(MANY / 2);
});

it("a write does not wait for the writes of another account", async () => {
  const hostile = await fixture.store.records.ensureAccount("hostile writer");
  const victim = await fixture.store.records.ensureAccount("writer");
  expect(
    await endedBefore(
      () => create(hostile.id, LONG),
      () => create(victim.id, "The tide."),
    ),
  ).toBeLessThan(MANY / 2);
});
