import Database from "better-sqlite3";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { unpackRun } from "../../../../../src/kb/index/code-run.ts";
import { codeWords } from "../../../../../src/kb/index/codes.ts";
import { checkStore } from "../../../../../src/kb/store/sqlite/check/check.ts";
import { openSqliteStore } from "../../../../../src/kb/store/sqlite/open.ts";
import { RUN_VECTORS } from "../../../../../src/kb/store/sqlite/vectors/code-writes.ts";
import type { ResourceKey } from "../../../../../src/kb/store/resources.ts";
import type { Store } from "../../../../../src/kb/store/store.ts";
import { DEFAULT_SETTINGS } from "../../../../../src/wire/primitives.ts";
import { openRandom } from "../../../../simulate/virtual/random.ts";
import { byVector, unit, wordsOnly } from "../../store-fixture.ts";
import { createEmbedded, updateEmbedded, type Embedded } from "../../embedded.ts";

const DIMENSIONS = 24;
const CHUNKS = 512;
const NOW = "2026-01-01T00:00:00.000Z";

let folder: string;
let path: string;
let store: Store;
let accountId: string;
let collectionId: string;
let made: number;
let random: ReturnType<typeof openRandom>;

const vector = (): Float32Array =>
  // As of real models, they share a direction.
  unit(Array.from({ length: DIMENSIONS }, () => 0.5 + random.between(-1000, 1000) / 1000));
const chunkingOf = (content: string, has: (at: number) => boolean = () => true): Embedded => {
  const words = wordsOnly(content);
  const vectors = words.spans.map((_, at) => (has(at) ? vector() : undefined));
  return { ...words, vectors, fingerprint: "m" };
};
const textOf = (chunks: number): string =>
  Array.from({ length: chunks }, (_, at) => `chunk ${made} ${at}`).join("\n\n");
const create = async (chunks = CHUNKS, has?: (at: number) => boolean): Promise<ResourceKey> => {
  made += 1;
  const content = textOf(chunks);
  const texts = { title: "Title", description: "", url: null, content, settings: DEFAULT_SETTINGS };
  const key = { accountId, id: made.toString(16).padStart(24, "0") };
  await createEmbedded(
    store,
    { ...key, ...texts, ownerId: "ann", createdAt: NOW, tier: "moderate", origin: "content" },
    chunkingOf(content, has),
  );
  return key;
};
/** Returns a column of the store's file. */
const select = async <T>(sql: string): Promise<T[]> => {
  await store.close();
  const db = new Database(path);
  const rows = db.prepare<[], T>(sql).pluck().all();
  db.close();
  await open();
  return rows;
};
const open = async (): Promise<void> => {
  store = await openSqliteStore({ path });
  const account = await store.records.ensureAccount("local");
  accountId = account.id;
  const collection = (await store.records.collections(account.id)).find(({ tier }) => tier === "moderate");
  collectionId = collection?.id ?? "";
};
const search = async (of: Store, queries: readonly Float32Array[]) => {
  const scope = { accountId, collectionId, ownerId: "ann" };
  const found = [];
  for (const query of queries)
    found.push(await byVector(of, { scope, vector: query, fingerprint: "m", limit: 50 }));
  return found;
};
/** Searches this store, and a copy of it after a change of its file. */
const searchBoth = async (change: string) => {
  const queries = Array.from({ length: 8 }, vector);
  await store.close();
  const copy = join(folder, "copy.sqlite");
  await copyFile(path, copy);
  const db = new Database(copy);
  db.exec(change);
  db.close();
  const other = await openSqliteStore({ path: copy });
  await open();
  try {
    return { own: await search(store, queries), other: await search(other, queries) };
  } finally {
    await other.close();
    await rm(copy, { force: true });
  }
};
const WITHOUT_RUNS = "DELETE FROM code_run; DELETE FROM code_change";

beforeEach(async () => {
  random = openRandom("codes");
  made = 0;
  folder = await mkdtemp(join(tmpdir(), "kbsync-codes-"));
  path = join(folder, "kb.sqlite");
  await open();
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true });
});

const fill = async (documents: number, has?: (at: number) => boolean): Promise<ResourceKey[]> => {
  const keys: ResourceKey[] = [];
  for (let at = 0; at < documents; at++) keys.push(await create(CHUNKS, has));
  return keys;
};
/** Waits until the runs are written that end before these sequences. */
const covered = async (...ends: readonly number[]): Promise<void> => {
  const db = new Database(path, { readonly: true });
  const runs = db.prepare("SELECT (last_row & 4294967295) + 1 FROM code_run ORDER BY last_row").pluck();
  try {
    await expect.poll(() => runs.all(), { timeout: 20_000 }).toEqual(ends);
  } finally {
    db.close();
  }
};

it("writes the codes of many vectors, and starts from them with the results of all vectors", async () => {
  await fill(19);
  await covered(RUN_VECTORS, 2 * RUN_VECTORS);
  const { own, other } = await searchBoth(WITHOUT_RUNS);
  expect(own.every((hits) => hits.length === 50)).toBe(true);
  expect(own).toEqual(other);
});

it("follows every change of vectors that have codes, across starts", async () => {
  const documents = await fill(17);
  await covered(RUN_VECTORS, 2 * RUN_VECTORS);
  for (let round = 0; round < 6; round++) {
    for (let change = 0; change < 12; change++) {
      const at = random.below(documents.length);
      const key = documents[at];
      if (key === undefined) break;
      const kind = random.pick(["update", "delete", "create", "vectors"]);
      if (kind === "create") documents.push(await create(random.between(1, 300)));
      if (kind === "delete") {
        documents.splice(at, 1);
        await store.records.deleteResource({ ...key, nowIso: NOW });
      }
      if (kind === "update") {
        made += 1;
        const content = textOf(random.between(1, 300));
        await updateEmbedded(store, { ...key, content, nowIso: NOW }, chunkingOf(content));
      }
      if (kind === "vectors") {
        const chunks = (await store.records.chunks(key))?.chunks ?? [];
        await store.index.putVectors(
          "m",
          chunks.slice(0, 40).map(({ ref }) => ({ ref, vector: vector() })),
        );
      }
    }
    const { own, other } = await searchBoth(WITHOUT_RUNS);
    expect(own).toEqual(other);
  }
  expect((await select<number>("SELECT count(*) FROM code_change"))[0]).toBeGreaterThan(0);
});

it("finds vectors that come after the codes of their neighbours", async () => {
  const [first] = await fill(10, (at) => at % 16 !== 0);
  // 15 of 16 chunks have a vector.
  await covered(8 * CHUNKS + 274);
  const chunks = (await store.records.chunks(first ?? { accountId, id: "" }))?.chunks ?? [];
  const late = vector();
  await store.index.putVectors("m", [{ ref: chunks[16]?.ref ?? 0, vector: late }]);
  await select("SELECT 1");
  const [hits] = await search(store, [late]);
  expect(hits?.[0]?.ref).toBe(chunks[16]?.ref);
});

it("writes no codes while many of their chunks have no vector", async () => {
  await fill(12, (at) => at % 4 !== 0);
  await store.scrub(accountId);
  expect(await select("SELECT count(*) FROM code_run")).toEqual([0]);
});

it("writes the codes of changed vectors again, and keeps none of a removed chunk", async () => {
  const documents = await fill(17);
  await covered(RUN_VECTORS, 2 * RUN_VECTORS);
  for (const key of documents.slice(0, 9)) await store.records.deleteResource({ ...key, nowIso: NOW });
  await store.scrub(accountId);
  const [run, ...others] = await select<Buffer>("SELECT data FROM code_run ORDER BY last_row");
  expect([others.length, await select("SELECT 1 FROM code_change")]).toEqual([0, []]);
  const { offsets } = unpackRun(run ?? Buffer.alloc(0), codeWords(DIMENSIONS));
  expect([offsets[0], offsets.length]).toEqual([CHUNKS, RUN_VECTORS - CHUNKS]);
  const { own, other } = await searchBoth(WITHOUT_RUNS);
  expect(own).toEqual(other);
});

it("removes the codes of a model that serves nowhere any more", async () => {
  const documents = await fill(8);
  await covered(RUN_VECTORS);
  for (const key of documents) {
    const chunks = (await store.records.chunks(key))?.chunks ?? [];
    await store.index.putVectors(
      "n",
      chunks.map(({ ref }) => ({ ref, vector: vector() })),
    );
  }
  await store.index.serveComplete("n", ["moderate"], []);
  while ((await store.index.dropRetired("n", 10_000)) > 0);
  expect(
    await select("SELECT model FROM code_run WHERE model NOT IN (SELECT number FROM embedding_model)"),
  ).toEqual([]);
  expect(await select("SELECT fingerprint FROM embedding_model")).toEqual(["n"]);
});

it("makes damaged codes of the vectors, and reports them", async () => {
  await fill(9);
  await covered(RUN_VECTORS);
  const damage = `UPDATE code_run SET data = CAST(substr(data, 1, 40000) || x'ABCD' || substr(data, 40003) AS BLOB)`;
  const { own, other } = await searchBoth(damage);
  expect(other).toEqual(own);
  await store.close();
  const db = new Database(path);
  db.exec(damage);
  db.close();
  expect(checkStore(path)?.findings).toMatchObject([{ check: "store-vectors", level: "damage" }]);
  expect(checkStore(path, { quick: true })?.findings).toEqual([]);
  await open();
});
