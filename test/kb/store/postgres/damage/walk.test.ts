import { randomBytes } from "node:crypto";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Damage, DamageCheck } from "../../../../../src/kb/store/damage-check.ts";
import { openDatabase, type Database } from "../../../../../src/kb/store/postgres/database/database.ts";
import { rebuildPart } from "../../../../../src/kb/store/postgres/damage/rebuild.ts";
import { openDamageCheck } from "../../../../../src/kb/store/postgres/damage/walk.ts";
import { openPostgresStore } from "../../../../../src/kb/store/postgres/open.ts";
import { mergeScope, scopesToMerge } from "../../../../../src/kb/store/postgres/words/merges.ts";
import { SEGMENTS_MERGED } from "../../../../../src/kb/store/search/merge-rules.ts";
import type { Store } from "../../../../../src/kb/store/store.ts";
import { DEFAULT_SETTINGS } from "../../../../../src/wire/primitives.ts";
import { openChance } from "../../../../crash/chance.ts";
import { byWords, LATER, NOW, unit } from "../../store-fixture.ts";
import { isSkipped, newDatabase, query } from "../databases.ts";
import { createEmbedded, updateEmbedded, type Embedded } from "../../embedded.ts";

const idOf = (at: number): string => at.toString(16).padStart(24, "0");

/** One chunk for each line, with vectors and sentences. */
function chunked(text: string): Embedded {
  const spans = [...text.matchAll(/[^\n]+/g)].map(({ 0: line, index }) => ({
    start: index,
    end: index + line.length,
    headings: [],
  }));
  const vectors = spans.map((_, at) => unit([1, at, 2, 3]));
  return { spans, vectors, sentences: vectors.map((vector) => [vector, vector]), fingerprint: "m1" };
}

/** Writes a document of three chunks. */
async function create(store: Store, accountId: string, at: number, ownerId = "ann"): Promise<void> {
  const content = `tide ${at}\nmoon and sea ${at}\n${"wave ".repeat(at % 9)}ebb`;
  await createEmbedded(
    store,
    {
      accountId,
      id: idOf(at),
      tier: "high_accuracy",
      ownerId,
      origin: "content",
      title: `Title ${at}`,
      description: "",
      url: null,
      content,
      settings: DEFAULT_SETTINGS,
      createdAt: NOW,
      fileToken: at === 3 ? "token" : null,
    },
    chunked(content),
  );
}

async function mergeAll(database: Database): Promise<void> {
  for (const of of await database.run("snapshot", "", (tx) => scopesToMerge(tx, 100)))
    while ((await database.run("write", "", (tx) => mergeScope(tx, of))) === "merged");
}

/** Makes a whole pass of a check. */
async function found(check: DamageCheck): Promise<{ readonly damage: Damage[]; readonly steps: number }> {
  const damage: Damage[] = [];
  let steps = 0;
  for (let position: string | undefined = ""; position !== undefined; steps += 1) {
    const step = await check.step(position);
    damage.push(...step.damage);
    position = step.next;
  }
  return { damage, steps };
}

describe.skipIf(isSkipped())("the check of a database for damage", () => {
  let sound = "";
  const opened: Database[] = [];
  const open = (url: string): Database => {
    const database = openDatabase(url);
    opened.push(database);
    return database;
  };
  afterEach(async () => {
    for (const database of opened.splice(0)) await database.close();
  });

  beforeAll(async () => {
    sound = await newDatabase();
    const store = await openPostgresStore(sound);
    const { id: accountId } = await store.records.ensureAccount("local");
    await store.records.addFile({
      accountId,
      token: "token",
      name: "a.pdf",
      mediaType: "application/pdf",
      declaredType: null,
      sizeBytes: 5,
      sha256: "a",
      createdAt: NOW,
    });
    for (let at = 0; at < SEGMENTS_MERGED; at++) await create(store, accountId, at);
    const database = openDatabase(sound);
    await mergeAll(database);
    await database.close();
    // Three documents in segments of their own, and a removal in the run.
    for (let at = 1; at <= 3; at++) await create(store, accountId, 1000 + at);
    await create(store, accountId, 2000, "bob");
    await store.records.deleteResource({ accountId, id: idOf(5), nowIso: LATER });
    await store.close();
  });

  /** Copies the sound database and runs statements on the copy. */
  const damagedBy = async (statement: string, stepRows?: number): Promise<DamageCheck> => {
    const url = await newDatabase(new URL(sound).pathname.slice(1));
    await query(url, statement);
    return openDamageCheck(open(url), stepRows);
  };
  const ROW = `(SELECT first_row FROM resource WHERE id = '${idOf(1002)}')`;

  it("finds nothing in a sound database with runs, segments, removals and files", async () => {
    for (const stepRows of [3, 50, 2000])
      expect((await found(await damagedBy("SELECT 1", stepRows))).damage).toEqual([]);
  });

  it.each<[string, string, Damage["rule"], string]>([
    [
      "a missing chunk",
      `DELETE FROM chunk WHERE row = ${ROW} + 1`,
      "missingChunks",
      `document ${idOf(1002)}`,
    ],
    [
      "a document without any chunk",
      `DELETE FROM chunk WHERE row BETWEEN ${ROW} AND ${ROW} + 2`,
      "missingChunks",
      `document ${idOf(1002)}`,
    ],
    [
      "chunks of a deleted document",
      `UPDATE resource SET is_deleted = true WHERE id = '${idOf(1002)}'`,
      "strayChunks",
      "chunk ",
    ],
    [
      "a chunk whose segment is missing",
      `DELETE FROM word_segment WHERE first_row = ${ROW}`,
      "rebuilt",
      `document ${idOf(1002)}`,
    ],
    [
      "a chunk that its run lacks",
      `INSERT INTO word_removal (account_id, scope, first, last)
        SELECT account_id, scope, first_row & 4294967295, first_row & 4294967295 FROM resource WHERE id = '${idOf(7)}'`,
      "rebuilt",
      `document ${idOf(7)}`,
    ],
    ["a missing run", "DELETE FROM word_run", "rebuilt", `document ${idOf(0)}`],
    [
      "a segment with a byte that changed",
      `UPDATE word_segment SET data = set_byte(data, 9, 255 - get_byte(data, 9)) WHERE first_row = ${ROW}`,
      "rebuilt",
      `the segment of row `,
    ],
    [
      "a segment that names its document",
      `UPDATE word_segment SET data = '\\x00' WHERE first_row = ${ROW}`,
      "rebuilt",
      `, with document ${idOf(1002)}`,
    ],
    [
      "a run whose lengths changed",
      "UPDATE word_run SET lengths = set_byte(lengths, 9, 255 - get_byte(lengths, 9))",
      "rebuilt",
      `with document ${idOf(0)}, ${idOf(1)}, ${idOf(2)}, …`,
    ],
    [
      "a page with a byte that changed",
      "UPDATE word_page SET data = set_byte(data, 50, 255 - get_byte(data, 50)) WHERE page = 0",
      "rebuilt",
      "page 0 of run ",
    ],
    ["a missing page", "DELETE FROM word_page WHERE page = 0", "rebuilt", "page 0 of run "],
    [
      "an entry of the index without its chunk",
      `INSERT INTO word_segment SELECT account_id, first_row + 500, data FROM word_segment WHERE first_row = ${ROW}`,
      "strayWords",
      "chunk ",
    ],
    [
      "a chunk of another length than its entry",
      `UPDATE chunk SET words = words + 1 WHERE row = ${ROW}`,
      "rebuilt",
      `document ${idOf(1002)}`,
    ],
    [
      "a vector of another length",
      `UPDATE chunk_vector SET value = value || '\\x00' WHERE row = ${ROW}`,
      "wrongVectors",
      `document ${idOf(1002)}`,
    ],
    [
      "vectors of sentences of another length",
      `UPDATE sentence_vectors SET vectors = vectors || '\\x00' WHERE row = ${ROW}`,
      "wrongVectors",
      `document ${idOf(1002)}`,
    ],
    [
      "a vector without its chunk",
      `INSERT INTO chunk_vector SELECT account_id, row + 500, model, value FROM chunk_vector WHERE row = ${ROW}`,
      "strayVectors",
      "row ",
    ],
    ["a file without its record", "DELETE FROM stored_file", "unknownFiles", `document ${idOf(3)}`],
  ])("finds %s", async (_name, statement, rule, subject) => {
    const check = await damagedBy(statement);
    const { damage } = await found(check);
    const first = damage.find((each) => each.rule === rule);
    expect(first).toMatchObject({ account: "local", tier: "high_accuracy", owner: "ann" });
    expect(first?.subject).toContain(subject);
    const left = (await found(check)).damage;
    expect(left.some((each) => each.rule === rule)).toBe(rule !== "rebuilt");
    // However small the steps are.
    const small = await found(await damagedBy(statement, 7));
    expect(small.damage.find((each) => each.rule === rule)?.subject).toContain(subject.split(",")[0]);
    expect(small.steps).toBeGreaterThan(50);
  });

  it.each([
    ["a segment", `UPDATE word_segment SET data = '\\x00' WHERE first_row = ${ROW}`],
    ["the head of a run", "UPDATE word_run SET filter = '\\x00'"],
    ["a page of a run", "UPDATE word_page SET data = '\\x00' WHERE page = 0"],
  ])("searches find what they found before after %s was damaged and made anew", async (_name, statement) => {
    const url = await newDatabase(new URL(sound).pathname.slice(1));
    const store = await openPostgresStore(url);
    const { id: accountId } = await store.records.ensureAccount("local");
    const collections = await store.records.collections(accountId);
    const collectionId = collections.find(({ tier }) => tier === "high_accuracy")?.id ?? "";
    const scope = { accountId, collectionId, ownerId: "ann" };
    const search = async (words: string): Promise<number[]> => {
      const { hits } = await byWords(store, { scope, query: words, limit: 1000 });
      return hits.map(({ bm25 }) => bm25);
    };
    const before = [await search("tide 1002"), await search("moon wave"), await search("tide 7")];
    await query(url, statement);
    // Nothing of the index is in the memory of this one.
    const other = await openPostgresStore(url);
    const failing = byWords(other, { scope, query: "tide", limit: 1000 });
    await expect(failing).rejects.toMatchObject({ code: "store_damaged" });
    await other.close();
    await found(openDamageCheck(open(url)));
    expect([await search("tide 1002"), await search("moon wave"), await search("tide 7")]).toEqual(before);
    await mergeAll(open(url));
    expect((await found(openDamageCheck(open(url)))).damage).toEqual([]);
    await store.close();
  });

  it("leaves a damaged part that has too many chunks, and one that is sound", async () => {
    const url = await newDatabase(new URL(sound).pathname.slice(1));
    const database = open(url);
    const run = await database.run("single", "", (tx) =>
      tx.get<{ accountId: string; scope: number; number: number }>(
        `SELECT account_id AS "accountId", scope, number FROM word_run`,
      ),
    );
    if (run === undefined) throw new Error("no run");
    const part = { kind: "run", number: run.number } as const;
    const rebuild = (chunksMax?: number) =>
      database.run("write", "", (tx) => rebuildPart(tx, run, part, chunksMax));
    expect(await rebuild()).toBe(false);
    await query(url, "UPDATE word_run SET filter = '\\x00'");
    expect(await rebuild(100)).toBe(false);
    expect(await rebuild()).toBe(true);
    expect(await rebuild()).toBe(false);
  });

  it.each([
    ["a segment", `UPDATE word_segment SET data = '\\x00' WHERE first_row = ${ROW}`, "damagedParts"],
    ["an entry", `UPDATE chunk SET words = words + 1 WHERE row = ${ROW}`, "wrongWords"],
  ])(
    "goes on after %s of a document that lacks a chunk, and changes nothing",
    async (_name, statement, rule) => {
      const check = await damagedBy(`DELETE FROM chunk WHERE row = ${ROW} + 1; ${statement}`);
      for (let pass = 0; pass < 2; pass++) {
        const { damage } = await found(check);
        const rules = damage.filter(({ subject }) => subject.includes(idOf(1002))).map((each) => each.rule);
        expect(rules).toEqual(["missingChunks", rule]);
      }
    },
  );

  it("returns the recorded files, whose bytes it cannot see", async () => {
    const check = await damagedBy("SELECT 1");
    let position: string | undefined = "";
    let files: unknown[] = [];
    while (position !== undefined) {
      const step = await check.step(position);
      files = files.concat(step.files);
      position = step.next;
    }
    expect(files).toMatchObject([{ token: "token", name: "a.pdf", account: "local" }]);
  });

  it("finds nothing while and after documents change in random order, and parts are merged", async () => {
    const seed = randomBytes(4).readUInt32LE();
    const chance = openChance(seed);
    const random = (): number => chance.next();
    const url = await newDatabase();
    const store = await openPostgresStore(url);
    const database = open(url);
    const check = openDamageCheck(database, 1 + Math.floor(random() * 300));
    const { id: accountId } = await store.records.ensureAccount("local");
    const ids = new Set<number>();
    let made = 100;
    for (let round = 0; round < 8; round++) {
      const checking = found(check);
      for (let step = 0; step < 40; step++) {
        const at = [...ids][Math.floor(random() * ids.size)];
        const kind = random();
        if (kind < 0.55 || at === undefined) {
          await create(store, accountId, ++made, random() < 0.5 ? "ann" : "bob");
          ids.add(made);
        } else if (kind < 0.7) {
          await store.records.deleteResource({ accountId, id: idOf(at), nowIso: LATER });
          ids.delete(at);
        } else if (kind < 0.85) {
          const change = { accountId, id: idOf(at), nowIso: LATER, title: `Title ${random()}` };
          await store.records.updateResource(change, undefined);
        } else {
          const content = `harbour ${random()}\nquay`;
          const change = { accountId, id: idOf(at), nowIso: LATER, content };
          await updateEmbedded(store, change, chunked(content));
        }
      }
      if (round % 3 === 2) await store.scrub(accountId);
      expect((await checking).damage, `seed ${seed}`).toEqual([]);
    }
    await mergeAll(database);
    expect((await found(check)).damage, `seed ${seed}`).toEqual([]);
    await store.close();
  });

  it("forgets the damage of an owner who is erased, also while a pass goes on", async () => {
    const url = await newDatabase();
    const store = await openPostgresStore(url);
    const { id: accountId } = await store.records.ensureAccount("local");
    await create(store, accountId, 1, "ann");
    await create(store, accountId, 2, "bob");
    const damageOf = (owner: string, at: number): Damage => {
      const subject = `document ${idOf(at)}`;
      return { rule: "missingChunks", subject, account: "local", tier: "high_accuracy", owner };
    };
    const [ann, bob] = [damageOf("ann", 1), damageOf("bob", 2)];
    const file: Damage = { rule: "missingFiles", subject: "file a.pdf", account: "local" };
    const pass = { startedMs: 1, found: 3, damage: [ann, bob, file] };
    const record = { now: pass, position: "on", last: { ...pass, endedMs: 2 } };
    const check = openDamageCheck(open(url));
    await check.save(record);
    expect(await check.record()).toEqual(record);
    await store.records.eraseResources({ accountId, ids: [idOf(1)], hidesOwner: true, nowIso: LATER });
    await store.records.eraseOwner({ accountId, ownerId: "ann" });
    const left = { ...pass, damage: [bob, file] };
    const forgotten = { now: left, position: "on", last: { ...left, endedMs: 2 } };
    expect(await check.record()).toEqual(forgotten);
    // As by a process that read the record before.
    await check.save(record);
    expect(await check.record()).toEqual(forgotten);
    await store.close();
  });

  it("goes on from any position, and passes over what was removed meanwhile", async () => {
    const check = await damagedBy("SELECT 1");
    const { next } = await check.step(JSON.stringify({ at: "pages", scope: 1_000_000, run: 5, page: 7 }));
    expect(JSON.parse(next ?? "")).toMatchObject({ at: "files" });
  });
});
