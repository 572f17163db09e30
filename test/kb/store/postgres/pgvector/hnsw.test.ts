import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { dotQuantized, quantize } from "../../../../../src/kb/index/quantized.ts";
import { openPostgresStore } from "../../../../../src/kb/store/postgres/open.ts";
import type { Scope } from "../../../../../src/kb/store/search-index.ts";
import type { Store } from "../../../../../src/kb/store/store.ts";
import { DEFAULT_SETTINGS } from "../../../../../src/wire/primitives.ts";
import { openRandom } from "../../../../simulate/virtual/random.ts";
import { LATER, NOW, unit } from "../../store-fixture.ts";
import { isSkipped, newDatabase, query, rowsOf } from "../databases.ts";
import { createEmbedded, updateEmbedded, type Embedded } from "../../embedded.ts";

/** A scope of the tests is large from here on. */
const CHUNKS_MIN = 4000;
const PAUSE_MS = 200;
const DIMENSIONS = 96;
/** Vectors of real texts vary in fewer directions than they have dimensions. */
const DIRECTIONS = 24;
const DOCUMENTS = 24;
const CHUNKS = 250;
const QUERIES = 50;
const WAIT = { timeout: 60_000, interval: 200 };
const INDEXES =
  "SELECT indexrelid::regclass::text AS name, indisvalid AS valid, pg_get_indexdef(indexrelid) AS sql FROM pg_index";
const HNSW = `${INDEXES} WHERE indexrelid::regclass::text LIKE 'vector_hnsw_%' AND indrelid::regclass::text LIKE 'chunk_vector_%'`;

interface IndexRow {
  readonly name: string;
  readonly valid: boolean;
  readonly sql: string;
}

describe.skipIf(isSkipped())("the index of vectors of a large scope", () => {
  const random = openRandom("hnsw");
  const basis = Array.from({ length: DIRECTIONS }, () =>
    Array.from({ length: DIMENSIONS }, () => random.next() - 0.5),
  );
  const vector = (): Float32Array => {
    const weights = basis.map(() => random.next() - 0.5);
    return unit(
      Array.from({ length: DIMENSIONS }, (_, at) =>
        basis.reduce((sum, direction, nth) => sum + (direction[at] ?? 0) * (weights[nth] ?? 0), 0),
      ),
    );
  };
  const vectors = new Map<string, Float32Array[]>();
  let url: string;
  let stores: Store[];
  let accountId: string;
  let collectionId: string;
  let made = 0;
  const indexes = (): Promise<IndexRow[]> => rowsOf<IndexRow>(url, HNSW);
  const store = (at = 0): Store => stores[at] ?? expect.unreachable();
  const open = (): Promise<Store> =>
    openPostgresStore(url, undefined, { chunksMin: CHUNKS_MIN, pauseMs: PAUSE_MS });

  const create = async (ownerId: string, chunks: number): Promise<string> => {
    const id = (made += 1).toString(16).padStart(24, "0");
    const content = Array.from({ length: chunks }, (_, at) => `${id} ${String(at).padStart(6, "0")}`).join(
      "\n",
    );
    const spans = [...content.matchAll(/[^\n]+/g)].map(({ 0: line, index }) => ({
      start: index,
      end: index + line.length,
      headings: [],
    }));
    const own = spans.map(vector);
    vectors.set(id, own);
    const chunking: Embedded = { spans, vectors: own, fingerprint: "m1" };
    const fields = {
      origin: "content",
      title: id,
      description: "",
      url: null,
      settings: DEFAULT_SETTINGS,
    } as const;
    await createEmbedded(
      store(),
      { ...fields, accountId, id, tier: "moderate", ownerId, content, createdAt: NOW },
      chunking,
    );
    return id;
  };
  const scopeOf = (ownerId: string): Scope => ({ accountId, collectionId, ownerId });
  const find = async (ownerId: string, of: Float32Array, limit = 10, on = store()): Promise<string[]> => {
    const found = await on.index.evidence({
      scope: scopeOf(ownerId),
      lexical: { query: "", limit: 1 },
      nearest: { vector: of, fingerprint: "m1", limit },
      depth: 10,
      withChunks: true,
    });
    const texts = new Map(found.chunks.map(({ ref, text }) => [ref, text]));
    return (found.nearest ?? []).map(({ ref }) => texts.get(ref) ?? "");
  };
  /** The same by comparing all. */
  const nearest = (ids: readonly string[], of: Float32Array, limit = 10): string[] =>
    ids
      .flatMap((id) =>
        (vectors.get(id) ?? []).map((each, at) => ({
          text: `${id} ${String(at).padStart(6, "0")}`,
          cosine: dotQuantized(of, quantize(each)),
        })),
      )
      .toSorted((a, b) => b.cosine - a.cosine)
      .slice(0, limit)
      .map(({ text }) => text);
  const recall = async (ownerId: string, ids: readonly string[]): Promise<number> => {
    let found = 0;
    for (let at = 0; at < QUERIES; at += 1) {
      const of = vector();
      const wanted = new Set(nearest(ids, of));
      found += (await find(ownerId, of)).filter((text) => wanted.has(text)).length;
    }
    return found / (10 * QUERIES);
  };
  const scans = async (): Promise<number> => {
    const [row] = await rowsOf<{ count: string }>(
      url,
      "SELECT coalesce(sum(idx_scan), 0) AS count FROM pg_stat_user_indexes WHERE indexrelname LIKE 'vector_hnsw_%'",
    );
    return Number(row?.count);
  };

  let large: string[];
  let small: string[];
  beforeAll(async () => {
    url = await newDatabase();
    stores = [await open(), await open()];
    ({ id: accountId } = await store().records.ensureAccount("one"));
    collectionId =
      (await store().records.collections(accountId)).find(({ tier }) => tier === "moderate")?.id ?? "";
    large = [];
    for (let at = 0; at < DOCUMENTS; at += 1) large.push(await create("large", CHUNKS));
    small = [await create("small", 30), await create("small", 500)];
  });
  afterAll(async () => {
    for (const each of stores) await each.close();
  });

  it("is built once, of that scope alone, beside reads and writes, and finds what a comparison of all vectors finds", async () => {
    await vi.waitFor(async () => expect(await indexes()).toMatchObject([{ valid: true }]), WAIT);
    const [index] = await indexes();
    expect(index?.sql).toMatch(/USING hnsw .*halfvec.* WHERE .*account_id = .*"?row"? >= .*model = 1/s);
    const before = await scans();
    expect(await recall("large", large)).toBeGreaterThanOrEqual(0.99);
    expect(await recall("small", small)).toBe(1);
    await vi.waitFor(async () => expect(await scans()).toBeGreaterThanOrEqual(before + QUERIES), WAIT);
    await sleep(3 * PAUSE_MS);
    expect(await indexes()).toHaveLength(1);
  });

  it("has what was just written, and nothing that was deleted", async () => {
    const added = await create("large", 20);
    const of = vectors.get(added)?.[7] ?? vector();
    expect(await find("large", of, 1, store(1))).toEqual([`${added} 000007`]);
    await store().records.deleteResource({ accountId, id: added, nowIso: LATER });
    expect((await find("large", of, 10, store(1))).filter((text) => text.startsWith(added))).toEqual([]);
    vectors.delete(added);
  });

  it("is not used with a filter, or for one document", async () => {
    // The server counts scans with a delay of a second.
    await sleep(1500);
    const before = await scans();
    const [first] = large;
    const of = vector();
    const found = await store().index.evidence({
      scope: { accountId, resourceId: first ?? "" },
      lexical: { query: "", limit: 1 },
      nearest: { vector: of, fingerprint: "m1", limit: 10 },
      depth: 10,
      withChunks: true,
    });
    const texts = new Map(found.chunks.map(({ ref, text }) => [ref, text]));
    expect(found.nearest?.map(({ ref }) => texts.get(ref))).toEqual(nearest([first ?? ""], of));
    await sleep(1500);
    expect(await scans()).toBe(before);
  });

  it("finds as many hits near a document that was updated often, which leaves dead entries in the index", async () => {
    const id = await create("large", 1);
    const [of = vector()] = vectors.get(id) ?? [];
    for (let nth = 1; nth <= 600; nth += 1) {
      const content = `${id} ${nth}`;
      const spans = [{ start: 0, end: content.length, headings: [] }];
      const moved = unit([...of].map((value) => value + (random.next() - 0.5) * 0.01));
      await updateEmbedded(
        store(),
        { accountId, id, content, nowIso: LATER },
        { spans, vectors: [moved], fingerprint: "m1" },
      );
    }
    const found = await find("large", of);
    expect(found).toHaveLength(10);
    expect(found[0]).toBe(`${id} 600`);
    // The index itself goes on no further, as before pgvector 0.8.
    await query(url, `ALTER DATABASE ${nameOf(url)} SET hnsw.max_scan_tuples = 1`);
    const limited = await open();
    expect(await find("large", of, 10, limited)).toEqual(found);
    await limited.close();
    await query(url, `ALTER DATABASE ${nameOf(url)} RESET hnsw.max_scan_tuples`);
    await store().records.deleteResource({ accountId, id, nowIso: LATER });
    vectors.delete(id);
  });

  it("is built anew if its build was interrupted, whatever limit of time the database sets, and no index of others is dropped", async () => {
    const [index] = await indexes();
    const others = ["vector_hnsw_1_1_1", '"vector_hnsw_Other"', "vector_hnsw_other"];
    await query(url, ...others.map((name) => `CREATE INDEX ${name} ON resource_0 (title)`));
    await query(url, `CREATE INDEX "vector_hnsw_Ours" ON chunk_vector_0 (model)`);
    await query(url, `ALTER DATABASE ${nameOf(url)} SET statement_timeout = 300`);
    // What an interrupted build leaves.
    await query(url, `UPDATE pg_index SET indisvalid = false WHERE indexrelid = '${index?.name}'::regclass`);
    expect(await recall("large", large)).toBeGreaterThanOrEqual(0.99);
    await vi.waitFor(async () => expect(await indexes()).toMatchObject([{ valid: true }]), WAIT);
    await query(url, `ALTER DATABASE ${nameOf(url)} RESET statement_timeout`);
    const kept = [...others, '"vector_hnsw_Ours"'];
    expect((await rowsOf<IndexRow>(url, INDEXES)).map(({ name }) => name)).toEqual(
      expect.arrayContaining(kept),
    );
    await query(url, ...kept.map((name) => `DROP INDEX ${name}`));
  });

  it("is dropped at once if its build fails", async () => {
    await store(1).close();
    stores = [store()];
    const [index] = await indexes();
    await query(url, `DROP INDEX ${index?.name}`);
    await vi.waitFor(async () => expect(await indexes()).toMatchObject([{ valid: false }]), {
      ...WAIT,
      interval: 10,
    });
    await query(url, `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX%'`);
    await vi.waitFor(async () => expect(await indexes()).toEqual([]), WAIT);
    await sleep(3 * PAUSE_MS);
    expect(await indexes()).toEqual([]);
  });

  it("does not hold up the end of a store whose server is silent", async () => {
    const silent = await openSilentFor("kbsync index", socketOf(url));
    const opened = await openPostgresStore(silent.address(url), undefined, {
      chunksMin: CHUNKS_MIN,
      pauseMs: PAUSE_MS,
    });
    await silent.asked;
    const before = performance.now();
    await opened.close();
    expect(performance.now() - before).toBeLessThan(2000);
    await silent.close();
    stores = [store(), await open()];
    await vi.waitFor(async () => expect(await indexes()).toMatchObject([{ valid: true }]), WAIT);
  });

  it("is removed when the scope is small again", async () => {
    for (const id of large.slice(6)) await store().records.deleteResource({ accountId, id, nowIso: LATER });
    await vi.waitFor(async () => expect(await indexes()).toEqual([]), WAIT);
    // A scan of the codes.
    expect(await recall("large", large.slice(0, 6))).toBeGreaterThanOrEqual(0.99);
  });
});

function nameOf(url: string): string {
  return new URL(url).pathname.slice(1);
}

/** Returns the path of the socket of the tests' server. */
function socketOf(url: string): string {
  return `${decodeURIComponent(new URL(url).host)}/.s.PGSQL.5432`;
}

/** Accepts connections for a server, and passes on all but those of a program, which it never answers. */
async function openSilentFor(
  program: string,
  path: string,
): Promise<{ address(url: string): string; readonly asked: Promise<void>; close(): Promise<void> }> {
  const asked = Promise.withResolvers<void>();
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("data", (first) => {
      if (first.includes(program)) {
        asked.resolve();
        return;
      }
      const onward = connect(path).on("error", () => socket.destroy());
      onward.write(first);
      onward.pipe(socket).pipe(onward);
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return {
    address: (url) => `postgres://postgres@127.0.0.1:${address.port}/${nameOf(url)}`,
    asked: asked.promise,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
