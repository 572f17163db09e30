import { afterAll, beforeAll, expect, it } from "vitest";
import { openSqliteStore } from "../../../../src/kb/store/sqlite/open.ts";
import type { Store } from "../../../../src/kb/store/store.ts";
import { DEFAULT_SETTINGS } from "../../../../src/wire/primitives.ts";
import { NOW, wordsOnly } from "../store-fixture.ts";

/** Calls of the hostile account in flight. */
const MANY = 60;
/** A text of many chunks. */
const LONG = Array.from({ length: 1500 }, (_, at) => `tide moon harbour crane ${at % 40} bread rent`).join(
  "\n\n",
);

let store: Store;
beforeAll(async () => {
  store = await openSqliteStore();
});
afterAll(() => store.close());

let made = 0;
const resource = (accountId: string, content: string) => ({
  accountId,
  id: (++made).toString(16).padStart(24, "0"),
  tier: "fastest" as const,
  ownerId: "ann",
  origin: "content" as const,
  title: "Untitled",
  description: "",
  url: null,
  content,
  settings: DEFAULT_SETTINGS,
  createdAt: NOW,
});
const create = (accountId: string, content: string) =>
  store.records.createResource(resource(accountId, content), wordsOnly(content));

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
  const hostile = await store.records.ensureAccount("hostile reader");
  const victim = await store.records.ensureAccount("reader");
  const search = async (accountId: string): Promise<void> => {
    const collections = await store.records.collections(accountId);
    const collectionId = collections.find(({ tier }) => tier === "fastest")?.id ?? "";
    await store.index.evidence({
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
  ).toBeLessThan(10);
});

it("a write does not wait for the writes of another account", async () => {
  const hostile = await store.records.ensureAccount("hostile writer");
  const victim = await store.records.ensureAccount("writer");
  expect(
    await endedBefore(
      () => create(hostile.id, LONG),
      () => create(victim.id, "The tide."),
    ),
  ).toBeLessThan(10);
});
