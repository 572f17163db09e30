import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openDatabase, type Database } from "../../../../src/kb/store/postgres/database/database.ts";
import { changeScope } from "../../../../src/kb/store/postgres/scopes/scopes.ts";
import { openPostgresStore } from "../../../../src/kb/store/postgres/open.ts";
import { makeMerge } from "../../../../src/kb/store/postgres/words/merging.ts";
import { mergeScope, scopesToMerge } from "../../../../src/kb/store/postgres/words/merges.ts";
import { SEGMENTS_MERGED } from "../../../../src/kb/store/search/merge-rules.ts";
import { byWords, LATER, openFixture, wordsOnly } from "../store-fixture.ts";
import { isSkipped, newDatabase, query, rowsOf } from "./databases.ts";

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

  const search = async (words: string) => {
    const { hits } = await byWords(fixture.store, {
      scope: await fixture.scope(),
      query: words,
      limit: 1000,
    });
    return hits;
  };
  /** The number of the account's scope. */
  const number = async () => {
    const found = await database.run("snapshot", "", (tx) =>
      tx.get<{ scope: number }>(
        `SELECT number AS scope FROM scope JOIN collection ON collection.id = collection_id
        WHERE account_id = @accountId`,
        { accountId: fixture.account.id },
      ),
    );
    if (found === undefined) throw new Error("the account has no scope");
    return found;
  };
  const mergeAll = async (): Promise<void> => {
    for (const of of await database.run("snapshot", "", (tx) => scopesToMerge(tx, 100)))
      while ((await database.run("write", "", (tx) => mergeScope(tx, of))) === "merged");
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

  it("finds a scope that is due although many others have few removed chunks", async () => {
    const accountId = fixture.account.id;
    await fixture.create("tide");
    const { scope } = await number();
    await database.run("write", "", async (tx) => {
      await tx.run(
        `INSERT INTO scope (collection_id, owner_id, chunks, segments, removed)
        SELECT collection_id, 'other ' || at, 100000, 100, 1 FROM scope, generate_series(1, 200) AS at WHERE number = @scope`,
        { scope },
      );
      await tx.run("UPDATE scope SET removed = 300 WHERE number = @scope", { scope });
    });
    const found = await database.run("snapshot", "", (tx) => scopesToMerge(tx, 100));
    expect(found).toEqual([{ accountId, scope }]);
    expect(await database.run("snapshot", "", (tx) => scopesToMerge(tx, 100, [scope]))).toEqual([]);
    await database.run("write", "", async (tx) => {
      await tx.run("UPDATE scope SET removed = 0 WHERE number = @scope", { scope });
      await tx.run("DELETE FROM scope WHERE owner_id LIKE 'other %'");
    });
  });

  it("a scope that cannot be merged does not hold up the others, and is tried again later", async () => {
    const address = await newDatabase();
    // Closed before the test merges: a store merges by itself. It cannot merge the damaged scope either.
    const store = await openPostgresStore(address);
    const fill = async (accountId: string, count: number): Promise<void> => {
      for (let at = 0; at < count; at++) {
        const content = `tide ${at}`;
        await store.records.createResource(fixture.resource(content, { accountId }), wordsOnly(content));
      }
    };
    const { id: damaged } = await store.records.ensureAccount("damaged");
    await fill(damaged, 1);
    await query(address, "UPDATE word_segment SET data = '\\x00'");
    await fill(damaged, SEGMENTS_MERGED);
    const { id: sound } = await store.records.ensureAccount("sound");
    await fill(sound, SEGMENTS_MERGED);
    await store.close();

    const merged = (): Promise<{ account: string; merged: string }[]> =>
      rowsOf(
        address,
        `SELECT account_id AS account, merged FROM scope JOIN collection ON collection.id = collection_id
        ORDER BY number`,
      );
    const of = (...counts: number[]) => [
      { account: damaged, merged: String(counts[0]) },
      { account: sound, merged: String(counts[1]) },
    ];
    const on = openDatabase(address);
    let nowMs = 0;
    const merge = makeMerge(on, new AbortController().signal, () => nowMs);
    expect(await merge()).toBe(false);
    expect(await merged()).toEqual(of(0, 1));
    await query(address, "DELETE FROM word_segment WHERE data = '\\x00'");
    await merge();
    expect(await merged()).toEqual(of(0, 1));
    nowMs = 3_600_000;
    await merge();
    expect(await merged()).toEqual(of(1, 1));
    await on.close();
  });

  it("looks again at once while one look finds as many scopes as it may", async () => {
    const accountId = fixture.account.id;
    for (let at = 0; at < 101; at++) await fixture.create(`tide ${at}`, { ownerId: `owner ${at}` });
    // At once, because the store merges too.
    await database.run("write", "", async (tx) => {
      const of = "SELECT number FROM scope WHERE owner_id LIKE 'owner %'";
      await tx.run(
        `INSERT INTO word_removal (account_id, scope, first, last) SELECT @accountId, number, 0, 0 FROM (${of}) AS of`,
        { accountId },
      );
      await tx.run(`UPDATE scope SET removed = 1, chunks = 0 WHERE number IN (${of})`);
    });
    const merge = makeMerge(database, new AbortController().signal);
    expect([await merge(), await merge(), await merge()]).toEqual([true, false, false]);
  });

  it("looks for scopes that its own writes made due without a scan, and for the others every minute", async () => {
    const address = await newDatabase();
    const store = await openPostgresStore(address);
    for (const name of ["own", "other"]) {
      const { id } = await store.records.ensureAccount(name);
      await store.records.createResource(fixture.resource("tide", { accountId: id }), wordsOnly("tide"));
    }
    await store.close();
    const numbers = await rowsOf<{ number: string }>(address, "SELECT number FROM scope ORDER BY number");
    const [own = 0, other = 0] = numbers.map((scope) => Number(scope.number));
    const on = openDatabase(address);
    let looks = 0;
    let nowMs = 0;
    const tried: string[] = [];
    const merge = makeMerge(
      {
        ...on,
        run: (mode, account, work) => {
          if (mode === "snapshot") looks += 1;
          else tried.push(account);
          return on.run(mode, account, work);
        },
      },
      new AbortController().signal,
      () => nowMs,
    );
    await merge();
    for (; nowMs < 50_000; nowMs += 1000) await merge();
    expect({ looks, tried }).toEqual({ looks: 1, tried: [] });

    await query(address, `UPDATE scope SET segments = ${SEGMENTS_MERGED} WHERE number = ${other}`);
    await on.run("write", "", (tx) => changeScope(tx, own, { segments: SEGMENTS_MERGED }));
    await merge();
    await merge();
    expect({ looks, tried: tried.length }).toEqual({ looks: 2, tried: 1 });
    nowMs = 60_000;
    await merge();
    expect(looks).toBe(3);
    expect(new Set(tried.slice(1)).size).toBe(2);
    await expect(
      on.run("write", "", async (tx) => {
        await changeScope(tx, own, { segments: 1 });
        throw new Error("rolled back");
      }),
    ).rejects.toThrow("rolled back");
    expect(on.due.size).toBe(0);
    await on.close();
  });

  it("scrub leaves nothing in the index of an account of what was removed", async () => {
    const accountId = fixture.account.id;
    const ids: string[] = [];
    for (let at = 0; at < 20; at++) ids.push((await fixture.create(`tide ${at}\n\nmoon ${at}`)).id);
    for (const id of ids.slice(0, 3))
      await fixture.store.records.deleteResource({ accountId, id, nowIso: LATER });
    const before = [await search("tide 5"), await search("moon")];
    await fixture.store.scrub(accountId);
    expect([await search("tide 5"), await search("moon")]).toEqual(before);
    const left = await database.run("snapshot", "", (tx) =>
      tx.get(
        `SELECT (SELECT count(*) FROM word_removal WHERE account_id = @accountId) AS removals,
          (SELECT sum(rows) FROM word_run WHERE account_id = @accountId) AS rows,
          (SELECT count(*) FROM word_segment WHERE account_id = @accountId) AS segments,
          (SELECT sum(removed) FROM scope JOIN collection ON collection.id = collection_id WHERE account_id = @accountId) AS removed`,
        { accountId },
      ),
    );
    expect(left).toEqual({ removals: 0, rows: 34, segments: 0, removed: 0 });
    await fixture.store.scrub(accountId);
  });
});
