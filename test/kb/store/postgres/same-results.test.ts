import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresStore } from "../../../../src/kb/store/postgres/open.ts";
import type { NewResource } from "../../../../src/kb/store/resources.ts";
import type { Scope } from "../../../../src/kb/store/search-index.ts";
import { openSqliteStore } from "../../../../src/kb/store/sqlite/open.ts";
import type { Store } from "../../../../src/kb/store/store.ts";
import type { Filter } from "../../../../src/wire/filter.ts";
import { DEFAULT_SETTINGS } from "../../../../src/wire/primitives.ts";
import { LATER, NOW, unit } from "../store-fixture.ts";
import { isSkipped, newDatabase } from "./databases.ts";
import { createEmbedded, updateEmbedded, type Embedded, lackingChunks } from "../embedded.ts";

const STEPS = 60;
const DIMENSIONS = 16;
const WORDS =
  "tide moon sea harbour ebb flow sand dune desert oasis camel wind wave sail mast rope knot anchor".split(
    " ",
  );
const DATES = ["2024-01-01", "2024-01-01T12:00:00Z", "2025-06-01T00:00:00+02:00", "no date"];
/** Chunks that are indexed by the stems of their languages. */
const IN_OTHER_LANGUAGES = [
  "Die Wohnungen der Mieter werden von der Verwaltung geprüft, und der Plan ist im Flur.",
  "Ключи от квартир хранятся в шкафу, и план висит в коридоре у входной двери.",
];
const QUERIES = [
  "tide",
  "moon sea harbour",
  "harbor tide",
  "mooon",
  "xyzzy sea",
  "sand dune oasis camel wind wave",
  "Wohnung tide",
  "ключ Wohnngen",
  "Wohnungsplan moon",
  "",
];
const FILTERS: readonly (Filter | undefined)[] = [
  undefined,
  { kind: "in", path: "lang", values: ["en", 3] },
  { kind: "not", of: { kind: "in", path: "lang", values: ["de"] } },
  { kind: "range", path: "year", bounds: [{ operator: "gte", value: 2022 }] },
  { kind: "range", path: "at", bounds: [{ operator: "gte", value: "2024-01-01T06:00:00Z" }] },
];

/** The same store twice: one account in each. */
interface Side {
  readonly store: Store;
  readonly accountId: string;
  readonly collectionId: string;
}

describe.skipIf(isSkipped())("the stores in SQLite and in PostgreSQL", () => {
  let sides: readonly Side[] = [];
  beforeAll(async () => {
    const stores = [await openSqliteStore(), await openPostgresStore(await newDatabase())];
    sides = await Promise.all(
      stores.map(async (store) => {
        const { id: accountId } = await store.records.ensureAccount("one");
        const found = (await store.records.collections(accountId)).find(({ tier }) => tier === "moderate");
        return { store, accountId, collectionId: found?.id ?? "" };
      }),
    );
  });
  afterAll(async () => {
    for (const { store } of sides) await store.close();
  });

  it("both stores return the same results with the same scores after any writes", async () => {
    const seed = randomBytes(4).readUInt32LE();
    const random = randomOf(seed);
    const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T; // never empty
    const words = (count: number): string => Array.from({ length: count }, () => pick(WORDS)).join(" ");
    const paragraph = (): string =>
      random() < 0.3 ? `${pick(IN_OTHER_LANGUAGES)} ${words(2)}` : words(3 + Math.floor(random() * 30));
    const content = (): string => Array.from({ length: 1 + Math.floor(random() * 6) }, paragraph).join("\n");
    const vector = (): Float32Array => unit(Array.from({ length: DIMENSIONS }, () => random() - 0.5));
    const chunked = (text: string, hasVectors: boolean): Embedded => {
      const spans = [...text.matchAll(/[^\n]+/g)].map(({ 0: line, index }) => ({
        start: index,
        end: index + line.length,
        headings: [],
      }));
      return hasVectors ? { spans, vectors: spans.map(vector), fingerprint: "m1" } : { spans };
    };
    const ids: string[] = [];

    for (let step = 0; step < STEPS; step++) {
      await write(step);
      await compare(step);
    }

    async function write(step: number): Promise<void> {
      const kind = random();
      if (kind < 0.6 || ids.length < 3) {
        const id = (step + 1).toString(16).padStart(24, "0");
        const text = content();
        const chunking = chunked(text, random() < 0.8);
        const metadata = { lang: pick(["en", "de"]), year: 2020 + Math.floor(random() * 5), at: pick(DATES) };
        const fields = {
          id,
          title: words(2),
          content: text,
          metadata: { ...metadata, path: `a/${step}.md` },
        };
        for (const { store, accountId } of sides)
          await createEmbedded(store, { ...RESOURCE, ...fields, accountId }, chunking);
        ids.push(id);
        return;
      }
      const id = pick(ids);
      const text = content();
      const chunking = kind < 0.75 ? chunked(text, true) : undefined;
      const changed = chunking === undefined ? { title: words(2) } : { content: text };
      for (const { store, accountId } of sides) {
        if (kind < 0.85) await updateEmbedded(store, { accountId, id, ...changed, nowIso: LATER }, chunking);
        else await store.records.deleteResource({ accountId, id, nowIso: LATER });
      }
      if (kind >= 0.85) ids.splice(ids.indexOf(id), 1);
    }

    async function compare(step: number): Promise<void> {
      const filter = pick(FILTERS);
      const one = random() < 0.2 ? pick(ids) : undefined;
      const scopeOf = ({ accountId, collectionId }: Side): Scope => ({
        ...(one === undefined ? { accountId, collectionId, ownerId: "ann" } : { accountId, resourceId: one }),
        ...(filter !== undefined && { filter }),
      });
      const query = pick(QUERIES);
      const limit = pick([1, 5, 50]);
      const nearest = random() < 0.7 ? { vector: vector(), fingerprint: "m1", limit } : undefined;
      const results = await Promise.all(
        sides.map(async (side) => {
          const { index } = side.store;
          const scope = scopeOf(side);
          const evidence = await index.evidence({
            scope,
            lexical: { query, limit },
            nearest,
            depth: 10,
            withChunks: true,
          });
          const refs = evidence.lexical.hits.map(({ ref }) => ref);
          const first = refs.slice(0, 5);
          const found = {
            evidence,
            documents: await index.documentMatches({ scope, query, refs }),
            around: await index.surroundings({ scope, refs: first, chunksMax: 2, charsMax: 80 }),
            pending: await index.pending({ scope, fingerprint: "m1" }),
            lacking: await lackingChunks(index, "m1", { tiers: ["moderate"] }),
          };
          return comparable(found, side);
        }),
      );
      expect(results[1], `seed ${seed}, step ${step}`).toEqual(results[0]);
    }
  });
});

const RESOURCE: Omit<NewResource, "accountId" | "id" | "title" | "content"> = {
  tier: "moderate",
  ownerId: "ann",
  origin: "content",
  description: "",
  url: null,
  settings: DEFAULT_SETTINGS,
  createdAt: NOW,
};

/** Rows of a scope begin at a multiple of this (kb/index/rows.ts). */
const ROWS_PER_SCOPE = 2 ** 32;

/** Replaces what differs between two stores: the ids of the account and its collection, and the number of the scope in refs. */
function comparable(found: unknown, { accountId, collectionId }: Side): unknown {
  return JSON.parse(
    JSON.stringify(found, (key, value: unknown) =>
      key === "ref" && typeof value === "number" ? value % ROWS_PER_SCOPE : value,
    )
      .replaceAll(accountId, "account")
      .replaceAll(collectionId, "collection"),
  );
}

/** A generator of numbers from 0 to 1 (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
