import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Transaction } from "../../../../src/kb/store/postgres/database/connections.ts";
import { openDatabase, type Database } from "../../../../src/kb/store/postgres/database/database.ts";
import { openPostgresStore } from "../../../../src/kb/store/postgres/open.ts";
import { mergeScope, scopesToPurge } from "../../../../src/kb/store/postgres/words/merges.ts";
import { makeMerge, purgeRemoved } from "../../../../src/kb/store/postgres/words/merging.ts";
import { readParts, readRemovals, type PartsOf } from "../../../../src/kb/store/postgres/words/word-parts.ts";
import { SEGMENTS_MERGED } from "../../../../src/kb/store/search/merge-rules.ts";
import { KbsyncError } from "../../../../src/lib/failure.ts";
import { openRandom } from "../../../simulate/virtual/random.ts";
import { byWords, LATER, openFixture, wordsOnly } from "../store-fixture.ts";
import { isSkipped, newDatabase, query, rowsOf } from "./databases.ts";

/** Above the numbers of all removals. */
const ALL = 1e12;
const ROUNDS = 12;
const WORDS = "tide moon sea wave ebb sand dune".split(" ");

describe.skipIf(isSkipped())("merges of the index of words during writes", () => {
  let url = "";
  let database: Database;
  const fixture = openFixture(async () => {
    const address = await newDatabase();
    // A later one is for `alone`.
    url ||= address;
    return openPostgresStore(address);
  });
  beforeAll(() => {
    database = openDatabase(url);
  });
  afterAll(() => database.close());

  const scopeOf = async (accountId: string): Promise<PartsOf> => {
    const of = await database.run("snapshot", "", (tx) =>
      tx.get<PartsOf>(
        `SELECT account_id AS "accountId", number AS scope FROM scope JOIN collection ON collection.id = collection_id
        WHERE account_id = @accountId`,
        { accountId },
      ),
    );
    return of ?? expect.unreachable();
  };
  const remove = async (id: string): Promise<void> => {
    await fixture.store.records.deleteResource({ accountId: fixture.account.id, id, nowIso: LATER });
  };
  /** Merges a scope, and runs `write` before each of the merge's statements up to the one that locks the scope. */
  const mergeDuring = async (of: PartsOf, purged: number, write: () => Promise<void>): Promise<void> => {
    await database.run("write", "", (tx) => {
      let isLocked = false;
      const before = async (statement: string): Promise<void> => {
        isLocked ||= statement.includes("FOR UPDATE");
        if (!isLocked) await write();
      };
      const during: Transaction = {
        all: async (statement, parameters) => {
          await before(statement);
          return tx.all(statement, parameters);
        },
        get: async (statement, parameters) => {
          await before(statement);
          return tx.get(statement, parameters);
        },
        run: async (statement, parameters) => {
          await before(statement);
          return tx.run(statement, parameters);
        },
      };
      return mergeScope(during, of, purged);
    });
  };
  /** Removals of a scope whose chunks no part has, and whether the scope counts all removals. */
  const check = async (of: PartsOf): Promise<unknown> =>
    database.run("snapshot", "", async (tx) => {
      const removals = await readRemovals(tx, of);
      const parts = await readParts(tx, of, [], []);
      const sequences = parts.flatMap(({ part }) =>
        Array.from({ length: part.rows }, (_, at) => part.sequence(at)),
      );
      const lost = removals.filter(({ first, last }) => !sequences.some((at) => first <= at && at <= last));
      const scope = await tx.get<{ removed: number }>("SELECT removed FROM scope WHERE number = @scope", {
        scope: of.scope,
      });
      const removed = removals.reduce((sum, { first, last }) => sum + last - first + 1, 0);
      return { lost, uncounted: (scope?.removed ?? 0) - removed };
    });
  const SOUND = { lost: [], uncounted: 0 };
  const removalsOf = (accountId: string): Promise<unknown[]> =>
    rowsOf(url, `SELECT scope FROM word_removal WHERE account_id = '${accountId}'`);
  /** Texts and scores of what is found. */
  const found = async (words: string): Promise<string[]> => {
    const scope = await fixture.scope();
    const { hits } = await byWords(fixture.store, { scope, query: words, limit: 1000 });
    const chunks = await fixture.store.index.foundChunks(
      scope,
      hits.map(({ ref }) => ref),
    );
    const texts = new Map(chunks.map(({ ref, text }) => [ref, text]));
    return hits.map(({ ref, bm25 }) => `${texts.get(ref)} ${bm25.toFixed(9)}`).toSorted();
  };

  it("a document at the head that is deleted during a merge leaves no removal without chunks", async () => {
    const ids: string[] = [];
    for (let at = 0; at < 30; at++) ids.push((await fixture.create(`tide ${at} moon`)).id);
    const accountId = fixture.account.id;
    await remove(ids.pop() ?? "");
    const of = await scopeOf(accountId);
    await mergeDuring(of, ALL, async () => {
      const id = ids.shift();
      if (id !== undefined) await remove(id);
    });
    expect(await check(of)).toEqual(SOUND);
    await fixture.store.scrub(accountId);
    expect(await removalsOf(accountId)).toEqual([]);
    expect(await fixture.texts("tide")).toHaveLength(Math.min(10, ids.length));
  });

  it("any writes during merges leave the index as a fresh one, and scrub ends", async () => {
    const seed = `merges ${Math.random()}`;
    const random = openRandom(seed);
    const text = (): string =>
      Array.from({ length: 1 + random.below(3) }, () =>
        Array.from({ length: 2 + random.below(5) }, () => random.pick(WORDS)).join(" "),
      ).join("\n\n");
    const accountId = fixture.account.id;
    const live = new Map<string, string>();
    const create = async (): Promise<void> => {
      const content = text();
      live.set((await fixture.create(content)).id, content);
    };
    const write = async (): Promise<void> => {
      const kind = random.next();
      // Those at the head of the scope most of the time.
      const id = [...live.keys()][random.chance(0.6) ? 0 : random.below(live.size)];
      if (kind < 0.3 || id === undefined || live.size < 10) return create();
      live.delete(id);
      if (kind < 0.7) return remove(id);
      const content = text();
      await fixture.store.records.updateResource(
        { accountId, id, content, nowIso: LATER },
        wordsOnly(content),
      );
      live.set(id, content);
    };
    for (let at = 0; at < SEGMENTS_MERGED; at++) await create();
    const of = await scopeOf(accountId);
    for (let round = 0; round < ROUNDS; round++) {
      for (let writes = random.below(40); writes > 0; writes--) await write();
      await mergeDuring(of, random.chance(0.5) ? ALL : 0, async () => {
        if (random.chance(0.5)) await write();
      });
      expect(await check(of), `${seed}, round ${round}`).toEqual(SOUND);
    }
    await Promise.all([fixture.store.scrub(accountId), write(), write()]);
    await fixture.store.scrub(accountId);
    expect(await removalsOf(accountId), `${seed}, after scrub`).toEqual([]);
    const merged: string[][] = [];
    for (const word of WORDS) merged.push(await found(`${word} tide`));
    const fresh: string[][] = [];
    await fixture.alone(async () => {
      for (const content of live.values()) await fixture.create(content);
      for (const word of WORDS) fresh.push(await found(`${word} tide`));
    });
    expect(merged, `${seed}, results`).toEqual(fresh);
  });

  it("scrub drops removals whose chunks no part has, in a scope with and without parts", async () => {
    const accountId = fixture.account.id;
    const first = await fixture.create("tide");
    const second = await fixture.create("moon");
    const of = await scopeOf(accountId);
    const restoreRemoval = (): Promise<void> =>
      query(
        url,
        `INSERT INTO word_removal (account_id, scope, first, last) VALUES ('${accountId}', ${of.scope}, 0, 0)`,
        `UPDATE scope SET removed = removed + 1 WHERE number = ${of.scope}`,
      );
    for (const { id } of [first, second]) {
      await remove(id);
      await fixture.store.scrub(accountId);
      await restoreRemoval();
      await fixture.store.scrub(accountId);
      expect(await removalsOf(accountId)).toEqual([]);
      expect(await check(of)).toEqual(SOUND);
    }
  });

  it("scrub waits for another process's merge without a wait in the database, until the store closes", async () => {
    const accountId = fixture.account.id;
    // Too few are removed for the store to merge the scope by itself.
    await fixture.create("moon");
    await remove((await fixture.create("tide")).id);
    const { scope } = await scopeOf(accountId);
    const other = new Client({ connectionString: url });
    await other.connect();
    await other.query(`BEGIN; SELECT pg_advisory_xact_lock(3, ${scope})`);
    const closing = new AbortController();
    const stopped = purgeRemoved(database, accountId, closing.signal).catch((error: unknown) => error);
    let isDone = false;
    const scrub = fixture.store.scrub(accountId).then(() => (isDone = true));
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(isDone).toBe(false);
    // PostgreSQL ends a wait for a lock after 10 s, and a merge may take longer.
    expect(await rowsOf(url, "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")).toEqual(
      [],
    );
    closing.abort();
    expect(await stopped).toMatchObject({ code: "store_busy", retryable: true });
    await other.query("COMMIT");
    await other.end();
    await scrub;
    expect(await database.run("snapshot", "", (tx) => scopesToPurge(tx, accountId))).toEqual([]);
  });

  it("a merge that may succeed later is tried again within seconds", async () => {
    let nowMs = 0;
    const tried: number[] = [];
    const busy = new KbsyncError("a lock was not released in time", { code: "store_busy", retryable: true });
    const merge = makeMerge(
      databaseOf([{ accountId: "a", scope: 1 }], async () => {
        tried.push(nowMs);
        throw busy;
      }),
      new AbortController().signal,
      () => nowMs,
    );
    for (; nowMs <= 30_000; nowMs += 1000) await merge();
    expect(tried).toEqual([0, 15_000, 30_000]);
  });

  it("a scope that always has a merge due does not hold up the others", async () => {
    const merged: string[] = [];
    const scopes = ["a", "b"].map((accountId, scope) => ({ accountId, scope }));
    const merge = makeMerge(
      databaseOf(scopes, async (accountId) => {
        merged.push(accountId);
        return "merged";
      }),
      new AbortController().signal,
    );
    await merge();
    expect(new Set(merged)).toEqual(new Set(["a", "b"]));
  });
});

/** A database in which these scopes are always due, and that merges one as given. */
function databaseOf(
  scopes: readonly PartsOf[],
  merge: (accountId: string) => Promise<unknown>,
): Pick<Database, "run" | "problem" | "due"> {
  const read: Transaction = {
    all: async <Row>(_: string, parameters: { readonly except?: readonly number[] } = {}) =>
      scopes.filter(({ scope }) => parameters.except?.includes(scope) !== true) as Row[], // the rows of `scopesToMerge`
    get: () => expect.unreachable(),
    run: () => expect.unreachable(),
  };
  return {
    // The caller names the result of the work, which a merge does not run here.
    run: async <T>(mode: string, accountId: string, work: (tx: Transaction) => Promise<T>) =>
      mode === "write" ? ((await merge(accountId)) as T) : work(read),
    due: new Set(),
    problem: () => undefined,
  };
}
