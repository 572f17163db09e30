import Database from "better-sqlite3";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openSqliteStore } from "../../../../../src/kb/store/sqlite/open.ts";
import { dequantize, dotQuantized, quantize } from "../../../../../src/kb/index/quantized.ts";
import { evict } from "../../../../../src/kb/store/search/code-cache.ts";
import type { Store } from "../../../../../src/kb/store/store.ts";
import type { Account } from "../../../../../src/kb/store/accounts.ts";
import type { Scope } from "../../../../../src/kb/store/search-index.ts";
import { DEFAULT_SETTINGS } from "../../../../../src/wire/primitives.ts";
import { byVector, dot, unit, wordsOnly } from "../../store-fixture.ts";
import { createEmbedded, updateEmbedded, type Embedded } from "../../embedded.ts";

const DIMENSIONS = 384;
const CLUSTERS = 40;
const NOW = "2026-01-01T00:00:00.000Z";

let state = 99;
const random = (): number => {
  state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
  return state / 0x7fffffff;
};
const gauss = (): number => Math.sqrt(-2 * Math.log(random() + 1e-12)) * Math.cos(2 * Math.PI * random());
/** Vectors that share a direction, like those of real models. */
const shared = Array.from({ length: DIMENSIONS }, () => gauss());
const centres = Array.from({ length: CLUSTERS }, () => shared.map((value) => value + gauss()));
const near = (centre: number): Float32Array =>
  unit((centres[centre % CLUSTERS] ?? []).map((value) => value + 0.8 * gauss()));

describe("stored vectors", () => {
  it("stores vectors with cosines accurate to 0.002", () => {
    for (let at = 0; at < 200; at++) {
      const [a, b] = [near(at), near(at + (at % 2))];
      expect(Math.abs(dotQuantized(a, quantize(b)) - dot(a, b))).toBeLessThan(0.002);
      const back = new Float32Array(DIMENSIONS);
      dequantize(quantize(b), back);
      expect(dot(back, a)).toBeCloseTo(dotQuantized(a, quantize(b)), 5);
    }
    expect(dotQuantized(new Float32Array(4), quantize(new Float32Array(4)))).toBe(0);
  });
});

describe("search by vector in a large scope", () => {
  let store: Store;
  let account: Account;
  let scope: Scope;
  let made = 0;
  /** Vectors by the text of their chunk. */
  const vectors = new Map<string, Float32Array>();

  const chunking = (names: readonly string[]): Embedded => {
    const own = names.map((_, at) => near(made + at));
    for (const [at, name] of names.entries()) vectors.set(name, own[at] ?? unit([1]));
    return { ...wordsOnly(names.join("\n\n")), vectors: own, fingerprint: "m" };
  };
  const create = (names: readonly string[], ownerId = "ann", chunks = chunking(names)) =>
    createEmbedded(
      store,
      {
        accountId: account.id,
        id: (++made).toString(16).padStart(24, "0"),
        tier: "moderate",
        ownerId,
        origin: "content",
        title: "Title",
        description: "",
        url: null,
        content: names.join("\n\n"),
        settings: DEFAULT_SETTINGS,
        createdAt: NOW,
      },
      chunks,
    );
  const nearest = async (vector: Float32Array, limit: number): Promise<string[]> => {
    const hits = await byVector(store, { scope, vector, fingerprint: "m", limit });
    return (
      await store.index.foundChunks(
        scope,
        hits.map(({ ref }) => ref),
      )
    ).map(({ text }) => text);
  };
  const exact = (vector: Float32Array, limit: number): string[] =>
    [...vectors]
      .map(([name, own]) => ({ name, cosine: dot(vector, own) }))
      .toSorted((a, b) => b.cosine - a.cosine)
      .slice(0, limit)
      .map(({ name }) => name);
  const recall = async (): Promise<number> => {
    let found = 0;
    for (let at = 0; at < 20; at++) {
      const query = near(at);
      const wanted = new Set(exact(query, 10));
      found += (await nearest(query, 10)).filter((name) => wanted.has(name)).length;
    }
    return found / 200;
  };

  beforeAll(async () => {
    store = await openSqliteStore();
    account = await store.records.ensureAccount("local");
    const collection = (await store.records.collections(account.id)).find(({ tier }) => tier === "moderate");
    scope = { accountId: account.id, collectionId: collection?.id ?? "", ownerId: "ann" };
    for (let at = 0; at < 30; at++)
      await create(Array.from({ length: 100 }, (_, index) => `n${at}x${index}`));
  });
  afterAll(() => store.close());

  it("finds the true nearest vectors", async () => {
    expect(await recall()).toBeGreaterThanOrEqual(0.95);
  });

  it("follows added, replaced and deleted vectors", async () => {
    await nearest(near(0), 10);
    const added = await create(["fresh"]);
    const own = vectors.get("fresh") ?? unit([1]);
    expect((await nearest(own, 1))[0]).toBe("fresh");
    const at = { accountId: account.id, id: added.id };
    await updateEmbedded(store, { ...at, content: "newer", nowIso: NOW }, chunking(["newer"]));
    vectors.delete("fresh");
    expect(await nearest(own, 500)).not.toContain("fresh");
    expect((await nearest(vectors.get("newer") ?? own, 1))[0]).toBe("newer");
    await store.records.deleteResource({ ...at, nowIso: NOW });
    vectors.delete("newer");
    expect(await nearest(own, 500)).not.toContain("newer");
    expect(await recall()).toBeGreaterThanOrEqual(0.95);
  });

  it("uses the new vector of an unchanged chunk", async () => {
    const { id } = await create(["moved"]);
    const own = vectors.get("moved") ?? unit([1]);
    expect((await nearest(own, 1))[0]).toBe("moved");
    const chunk = (await store.records.chunks({ accountId: account.id, id }))?.chunks[0];
    const opposite = own.map((value) => -value);
    await store.index.putVectors("m", [{ ref: chunk?.ref ?? 0, vector: opposite }]);
    vectors.set("moved", opposite);
    expect((await nearest(own, 1))[0]).not.toBe("moved");
    expect((await nearest(opposite, 1))[0]).toBe("moved");
  });

  it("searches one resource by vector", async () => {
    const { id } = await create(["one", "two"]);
    const part: Scope = { accountId: account.id, resourceId: id };
    const hits = await byVector(store, { scope: part, vector: near(3), fingerprint: "m", limit: 10 });
    expect(
      (
        await store.index.foundChunks(
          part,
          hits.map(({ ref }) => ref),
        )
      )
        .map(({ text }) => text)
        .toSorted(),
    ).toEqual(["one", "two"]);
  });

  it("finds vectors added to a scope after a first search without any", async () => {
    const texts = Array.from({ length: 500 }, (_, at) => `bare ${at}`);
    const { id } = await create(texts, "bob", wordsOnly(texts.join("\n\n")));
    const within = { ...scope, ownerId: "bob" };
    const ask = async () => byVector(store, { scope: within, vector: near(1), fingerprint: "m", limit: 10 });
    expect(await ask()).toEqual([]);
    const chunks = (await store.records.chunks({ accountId: account.id, id }))?.chunks ?? [];
    // The mean of a single one is that one.
    await store.index.putVectors("m", [{ ref: chunks[0]?.ref ?? 0, vector: near(0) }]);
    expect(await ask()).toHaveLength(1);
    await store.index.putVectors(
      "m",
      chunks.slice(1, 5).map(({ ref }, at) => ({ ref, vector: near(at) })),
    );
    expect(await ask()).toHaveLength(5);
    expect(await ask()).toHaveLength(5);
  });
});

describe("the memory of codes", () => {
  const MB = 1024 * 1024;
  /** Evicts from scopes with so many MB of codes and of stored vectors, the least recently used first; says what is left. */
  const left = (...sizes: readonly (readonly [codesMb: number, storedMb: number])[]): string[] => {
    const partitions = new Map(
      sizes.map(([codesMb, storedMb], at) => {
        const codes = {
          bytes: codesMb * MB,
          storedBytes: storedMb * MB,
          dropStored: () => void (stored[at] = 0),
        };
        return [`scope ${at}`, { codes }];
      }),
    );
    const stored = sizes.map(([, storedMb]) => storedMb);
    evict(partitions);
    return [...partitions.keys()].map((key) => `${key}: ${stored[Number(key.slice(-1))]}`);
  };

  it.each([
    [
      "within the bounds all stays",
      [
        [100, 40],
        [156, 56],
      ],
      ["scope 0: 40", "scope 1: 56"],
    ],
    [
      "above the bound of codes the least recently used scopes go",
      [
        [100, 0],
        [100, 0],
        [100, 0],
      ],
      ["scope 1: 0", "scope 2: 0"],
    ],
    [
      "the last scope stays, whatever its size",
      [
        [10, 0],
        [300, 0],
      ],
      ["scope 1: 0"],
    ],
    [
      "above the bound of vectors the least recently used ones go, and their codes stay",
      [
        [10, 50],
        [10, 50],
        [10, 40],
      ],
      ["scope 0: 0", "scope 1: 50", "scope 2: 40"],
    ],
    ["even those of the last scope", [[10, 97]], ["scope 0: 0"]],
  ] as const)("%s", (_name, sizes, expected) => {
    expect(left(...sizes)).toEqual(expected);
  });
});

it("reads the vectors again if a searcher missed more changes than the log holds", async () => {
  const folder = await mkdtemp(join(tmpdir(), "kbsync-vectors-"));
  const path = join(folder, "kb.sqlite");
  const store = await openSqliteStore({ path });
  try {
    const account = await store.records.ensureAccount("local");
    const collection = (await store.records.collections(account.id)).find(({ tier }) => tier === "moderate");
    const scope = { accountId: account.id, collectionId: collection?.id ?? "", ownerId: "ann" };
    const create = async (id: string, vectors: readonly Float32Array[]): Promise<void> => {
      const content = vectors.map((_, at) => `${id} ${at}`).join("\n\n");
      const texts = { title: "Title", description: "", url: null, content, settings: DEFAULT_SETTINGS };
      const key = { accountId: account.id, id: id.repeat(24), ownerId: "ann", createdAt: NOW };
      await createEmbedded(
        store,
        { ...key, ...texts, tier: "moderate", origin: "content" },
        { ...wordsOnly(content), vectors, fingerprint: "m" },
      );
    };
    const nearest = async (vector: Float32Array): Promise<number> =>
      (await byVector(store, { scope, vector, fingerprint: "m", limit: 1 }))[0]?.cosine ?? 0;
    // More than are compared one by one without codes.
    await create(
      "a",
      Array.from({ length: 500 }, () => near(0)),
    );
    const wanted = unit(Array.from({ length: DIMENSIONS }, (_, at) => (at % 2 === 0 ? 1 : -1)));
    expect(await nearest(wanted)).toBeLessThan(0.9);
    await create("b", [wanted]);
    const db = new Database(path);
    db.exec(`
      DELETE FROM vector_change;
      INSERT INTO vector_change (scope, first_row, last_row) VALUES (-1, 0, 0), (-1, 0, 0)`);
    db.close();
    expect(await nearest(wanted)).toBeGreaterThan(0.99);
  } finally {
    await store.close();
    await rm(folder, { recursive: true });
  }
});
