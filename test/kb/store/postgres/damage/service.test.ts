import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { openSharedTurns } from "../../../../../src/kb/queue/shared-turns.ts";
import {
  openStoreCheck,
  type CheckPace,
  type StoreCheck,
} from "../../../../../src/kb/resources/store-check.ts";
import type { Damage } from "../../../../../src/kb/store/damage-check.ts";
import { checkPostgres } from "../../../../../src/kb/store/postgres/check.ts";
import { openDatabase } from "../../../../../src/kb/store/postgres/database/database.ts";
import { openDamageCheck } from "../../../../../src/kb/store/postgres/damage/walk.ts";
import { openPostgresStore } from "../../../../../src/kb/store/postgres/open.ts";
import type { Store } from "../../../../../src/kb/store/store.ts";
import { hashedEmbedder } from "../../../../fakes/hashed-embedder.ts";
import { WAIT } from "../../../../wait.ts";
import { lackingChunks } from "../../embedded.ts";
import { createBody, openRunning } from "../../../service/running.ts";
import { NOW } from "../../store-fixture.ts";
import { isSkipped, newDatabase, query, rowsOf } from "../databases.ts";
import { openServices } from "../service/services.ts";

const PACE: CheckPace = { workMs: 0, pauseTimes: 0, pauseMinMs: 1, passMs: 3_600_000, lookMs: 5 };

describe.skipIf(isSkipped())("services that check their database", () => {
  const closing: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
  });

  /** Documents of owners of their own, so that a pass has many steps. */
  const filled = async (owners: number): Promise<string> => {
    const services = await openServices(1);
    for (let at = 0; at < owners; at++)
      await services.send(0, "POST", "/api/rag/resource", { body: createBody({ owner_id: `owner ${at}` }) });
    await services.close();
    await query(services.url, "DELETE FROM claim");
    return services.url;
  };

  interface Process {
    readonly store: Store;
    readonly check: StoreCheck;
    readonly damage: Damage[];
    steps(this: void): number;
    close(this: void): Promise<void>;
  }
  let nowMs = 0;
  /** Opens a check as a process has it. */
  const openProcess = async (url: string, name: string, pace = PACE): Promise<Process> => {
    const store = await openPostgresStore(url);
    const turns = openSharedTurns(store.claims, name, () => undefined);
    const damage: Damage[] = [];
    let steps = 0;
    const { damageCheck } = store;
    if (damageCheck === undefined) throw new Error("the store has no check");
    const check = openStoreCheck({
      check: {
        ...damageCheck,
        step: (position) => {
          steps += 1;
          return damageCheck.step(position);
        },
      },
      files: undefined,
      records: store.records,
      turns,
      nowMs: () => nowMs,
      onDamage: (each) => damage.push(each),
      onProblem: (error) => {
        throw error;
      },
      pace,
    });
    let ended: Promise<void> | undefined;
    const close = (): Promise<void> =>
      (ended ??= check
        .close()
        .then(() => turns.close())
        .then(() => store.close()));
    closing.push(close);
    return { store, check, damage, steps: () => steps, close };
  };
  const passes = async ({ store }: Process): Promise<number | undefined> =>
    (await store.damageCheck?.record())?.last?.endedMs;

  it("two processes check a database once, and report damage once", async () => {
    const url = await filled(5);
    await query(url, "DELETE FROM chunk WHERE row = (SELECT min(row) FROM chunk)");
    nowMs = 1000;
    const alone = await openProcess(url, "alone");
    alone.check.start();
    await vi.waitFor(async () => expect(await passes(alone)).toBe(1000), WAIT);
    await alone.close();
    expect(alone.damage.map(({ rule }) => rule)).toEqual(["missingChunks", "strayWords"]);
    await query(url, "DELETE FROM claim");

    nowMs = 2000;
    const both = [await openProcess(url, "a"), await openProcess(url, "b")];
    for (const { check } of both) check.start();
    const [first] = both;
    if (first === undefined) throw new Error("unreachable");
    await vi.waitFor(async () => expect(await passes(first)).toBe(2000), WAIT);
    expect(both.reduce((sum, { steps }) => sum + steps(), 0)).toBe(alone.steps());
    expect(both.flatMap(({ damage }) => damage)).toEqual(alone.damage);

    // The next pass, an hour later, finds the same, which is not reported again.
    nowMs += PACE.passMs;
    await vi.waitFor(async () => expect(await passes(first)).toBe(nowMs), WAIT);
    expect(both.flatMap(({ damage }) => damage)).toEqual(alone.damage);
  });

  it("a process goes on with the pass of one that ended", async () => {
    const url = await filled(5);
    nowMs = 5000;
    const slow = await openProcess(url, "slow", { ...PACE, pauseMinMs: 3_600_000 });
    slow.check.start();
    await vi.waitFor(async () => expect(await slow.store.damageCheck?.record()).toBeDefined(), WAIT);
    await slow.close();
    expect(slow.steps()).toBe(1);
    const next = await openProcess(url, "next");
    next.check.start();
    await vi.waitFor(async () => expect(await passes(next)).toBe(5000), WAIT);
    const whole = await openProcess(url, "whole");
    nowMs += PACE.passMs;
    await next.close();
    whole.check.start();
    await vi.waitFor(async () => expect(await passes(whole)).toBe(nowMs), WAIT);
    expect(slow.steps() + next.steps()).toBe(whole.steps());
  });

  it("damage is in the log, in the figures and in the check of the database, with its remedy", async () => {
    const url = await filled(2);
    await query(
      url,
      "UPDATE word_segment SET data = '\\x00' WHERE first_row = (SELECT min(first_row) FROM word_segment)",
    );
    const [document] = await rowsOf<{ id: string; owner: string }>(
      url,
      "SELECT resource.id, owner_id AS owner FROM resource JOIN scope ON scope.number = scope ORDER BY scope LIMIT 1",
    );
    const store = await openPostgresStore(url);
    const running = await openRunning({ store, sharesStore: true, checkPace: PACE });
    closing.push(() => running.close());
    await vi.waitFor(
      async () =>
        expect((await running.service.figures()).check).toEqual({
          damage: 1,
          ageSeconds: expect.any(Number) as number,
        }),
      WAIT,
    );
    expect(running.log()).toContain("the store was damaged");
    expect(running.log()).toContain(`with document ${document?.id}`);
    const { findings, checkedMs } = await checkPostgres(url);
    expect(checkedMs).toBeGreaterThan(Date.now() - 600_000);
    expect(findings[0]).toMatchObject({ check: "store-words", level: "warning" });
    expect(findings[0]?.message).toContain(
      `document ${document?.id}, account local, owner ${document?.owner}`,
    );
    expect(findings[0]?.remedy).toContain("Searches find everything again");
  });

  it("a damaged part of one owner's index fails that owner's searches alone, and takes no process out of use", async () => {
    const services = await openServices(2, { checkPace: PACE });
    closing.push(() => services.close());
    const create = async (owner_id: string): Promise<string> => {
      const body = createBody({ owner_id });
      return (await services.send(0, "POST", "/api/rag/resource", { body })).json.data.collectionId;
    };
    const collection_id = await create("damaged");
    await create("whole");
    const checked = async () => (await services.store(0).damageCheck?.record())?.last;
    await vi.waitFor(async () => expect(await checked()).toBeDefined(), WAIT);
    await query(
      services.url,
      "UPDATE word_segment SET data = '\\x00' WHERE first_row = (SELECT min(first_row) FROM word_segment)",
    );
    for (const at of [0, 1]) {
      const search = (owner_id: string) =>
        services.send(at, "POST", "/rag/query", { body: { query: "moon", owner_id, collection_id } });
      expect(await search("damaged")).toMatchObject({
        status: 503,
        json: { error: { code: "store_damaged" } },
      });
      expect(await search("whole")).toMatchObject({ status: 200 });
      expect(await services.send(at, "GET", "/readyz")).toMatchObject({ status: 200 });
      expect(await services.send(at, "GET", "/v1/health")).toMatchObject({ json: { status: "ready" } });
      expect(services.all[at]?.log()).toContain("the index in the database is damaged");
    }
  });

  it("names a recorded file that is not in the common storage, and no file that is", async () => {
    const url = await newDatabase();
    const store = await openPostgresStore(url);
    const path = await mkdtemp(join(tmpdir(), "kbsync-shared-"));
    closing.push(() => rm(path, { recursive: true }));
    const { id: accountId } = await store.records.ensureAccount("local");
    const file = { accountId, mediaType: "text/plain", declaredType: null, sizeBytes: 5, sha256: "a" };
    const add = (token: string, name: string, createdAt: string) =>
      store.records.addFile({ ...file, token, name, createdAt });
    await writeFile(join(path, "there"), "tides");
    await add("there", "there.txt", NOW);
    await add("lost-for-ever", "lost.txt", NOW);
    await add("in-flight", "in-flight.txt", new Date().toISOString());
    const running = await openRunning({
      store,
      sharesStore: true,
      checkPace: PACE,
      files: { kind: "folder", path },
      retention: { unusedFileDays: 100_000 },
    });
    closing.push(() => running.close());
    await vi.waitFor(
      async () =>
        expect((await store.damageCheck?.record())?.last?.damage).toEqual([
          {
            rule: "missingFiles",
            subject: "file lost.txt, whose token begins with lost-for",
            account: "local",
          },
        ]),
      WAIT,
    );
  });

  it("a changed title makes vectors of a wrong length anew, as the remedy says", async () => {
    const url = await newDatabase();
    const running = await openRunning({
      store: await openPostgresStore(url),
      sharesStore: true,
      openEmbedder: () => Promise.resolve({ ...hashedEmbedder(), close: () => Promise.resolve() }),
    });
    closing.push(() => running.close());
    const send = async (at: number): Promise<string> => {
      const body = createBody({ title: `Title ${at}`, collection_details: "moderate" });
      return (await running.send("POST", "/api/rag/resource", { body })).json.data._id;
    };
    const ids = [await send(1), await send(2), await send(3)];
    await vi.waitFor(
      async () => expect(await lackingChunks(running.store.index, hashedEmbedder().fingerprint)).toEqual([]),
      WAIT,
    );
    await query(
      url,
      "UPDATE chunk_vector SET value = substr(value, 1, 9) WHERE row = (SELECT min(row) FROM chunk_vector)",
    );
    const database = openDatabase(url);
    closing.push(() => database.close());
    const found = async (): Promise<Damage[]> => {
      const check = openDamageCheck(database);
      const damage: Damage[] = [];
      for (let position: string | undefined = ""; position !== undefined;) {
        const step = await check.step(position);
        damage.push(...step.damage);
        position = step.next;
      }
      return damage;
    };
    expect(await found()).toMatchObject([{ rule: "wrongVectors", subject: `document ${ids[0]}` }]);
    for (const title of ["Another title", "Title 1"])
      await running.send("PUT", `/api/rag/resource/${ids[0]}`, { body: { title } });
    await vi.waitFor(async () => expect(await found()).toEqual([]), WAIT);
  });
});
