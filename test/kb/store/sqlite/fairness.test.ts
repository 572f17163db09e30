import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterAll, expect, it } from "vitest";
import { openSqliteStore } from "../../../../src/kb/store/sqlite/open.ts";
import type { Scope } from "../../../../src/kb/store/search-index.ts";
import { openFixture } from "../store-fixture.ts";

/** Calls of the hostile account in flight. */
const MANY = 24;
/** A text of many chunks. */
const LONG = Array.from({ length: 1500 }, (_, at) => `tide moon harbour crane ${at % 40} bread rent`).join(
  "\n\n",
);

const folder = mkdtempSync(join(tmpdir(), "kbsync-fairness-"));
const path = join(folder, "kb.sqlite");
const fixture = openFixture(() => openSqliteStore({ path }));
afterAll(() => rmSync(folder, { recursive: true }));
const create = (accountId: string, content: string) => fixture.create(content, { accountId });

/** Starts many calls, and one of another account behind them; returns how many of the many end before the other. */
async function endedBefore(many: () => Promise<unknown>, other: () => Promise<unknown>): Promise<number> {
  let ended = 0;
  const { started, last } = writeNothingDuring(() => ({
    started: Array.from({ length: MANY }, () => many().then(() => (ended += 1))),
    last: other(),
  }));
  await last;
  const before = ended;
  await Promise.all(started);
  return before;
}

/** Runs `send` while no write can begin: a thread that works during a stall of this one would write all that was sent before it. */
function writeNothingDuring<T>(send: () => T): T {
  const db = new Database(path);
  try {
    db.exec("BEGIN IMMEDIATE");
    return send();
  } finally {
    db.close();
  }
}

it("a search does not wait for the searches of another account", async () => {
  const hostile = await fixture.store.records.ensureAccount("hostile reader");
  const victim = await fixture.store.records.ensureAccount("reader");
  const scopeOf = async (accountId: string): Promise<Scope> => {
    const collections = await fixture.store.records.collections(accountId);
    const collectionId = collections.find(({ tier }) => tier === "fastest")?.id ?? "";
    return { accountId, collectionId, ownerId: "ann" };
  };
  const search = (scope: Scope): Promise<unknown> =>
    fixture.store.index.evidence({
      scope,
      lexical: { query: "tide moon harbour crane bread rent", limit: 1000 },
      nearest: undefined,
      depth: 100,
      withChunks: true,
    });
  await create(hostile.id, LONG);
  await create(victim.id, "The tide.");
  const [hostileScope, victimScope] = [await scopeOf(hostile.id), await scopeOf(victim.id)];
  expect(
    await endedBefore(
      () => search(hostileScope),
      () => search(victimScope),
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
