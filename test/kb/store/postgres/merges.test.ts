import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openDatabase, type Database } from "../../../../src/kb/store/postgres/database/database.ts";
import { openPostgresStore } from "../../../../src/kb/store/postgres/open.ts";
import { mergeScope, scopesToMerge } from "../../../../src/kb/store/postgres/words/merges.ts";
import { SEGMENTS_MERGED } from "../../../../src/kb/store/search/merge-rules.ts";
import { byWords, LATER, openFixture } from "../store-fixture.ts";
import { isSkipped, newDatabase } from "./databases.ts";

describe.skipIf(isSkipped())("merges of the index of words in PostgreSQL", () => {
  let url = "";
  let database: Database;
  const fixture = openFixture(async () => {
    url = await newDatabase();
    return openPostgresStore(url);
  });
  beforeAll(() => {
    database = openDatabase(url);
  });
  afterAll(() => database.close());

  const search = async (query: string) => {
    const { hits } = await byWords(fixture.store, { scope: await fixture.scope(), query, limit: 1000 });
    return hits;
  };
  const mergeAll = async (): Promise<void> => {
    for (const of of await database.run("snapshot", "", (tx) => scopesToMerge(tx, 100)))
      while (await database.run("write", "", (tx) => mergeScope(tx, of)));
  };

  it("merges in PostgreSQL change no result, and drop what was removed", async () => {
    const ids: string[] = [];
    for (let at = 0; at < SEGMENTS_MERGED; at++) {
      const { id } = await fixture.create(`tide ${at % 7} moon\n\nsea ${at} ${"wave ".repeat(at % 5)}`);
      ids.push(id);
    }
    const accountId = fixture.account.id;
    for (const id of ids.slice(0, 20))
      await fixture.store.records.deleteResource({ accountId, id, nowIso: LATER });
    const before = [await search("tide 3"), await search("sea wave"), await search("moon 12")];
    await mergeAll();
    expect([await search("tide 3"), await search("sea wave"), await search("moon 12")]).toEqual(before);

    for (const id of ids.slice(20))
      await fixture.store.records.deleteResource({ accountId, id, nowIso: LATER });
    await mergeAll();
    expect(await search("tide 3")).toEqual([]);
    const left = await database.run("snapshot", "", (tx) =>
      tx.all(
        `SELECT 1 FROM word_segment UNION ALL SELECT 1 FROM word_run UNION ALL SELECT 1 FROM word_page
        UNION ALL SELECT 1 FROM word_removal`,
      ),
    );
    expect(left).toEqual([]);
  });
});
