import Database from "better-sqlite3";
import { openSqliteStore } from "../../../../../src/kb/store/sqlite/open.ts";
import type { NewResource } from "../../../../../src/kb/store/resources.ts";
import type { Scope } from "../../../../../src/kb/store/search-index.ts";
import type { Store } from "../../../../../src/kb/store/store.ts";
import { DEFAULT_SETTINGS } from "../../../../../src/wire/primitives.ts";
import { putEmbedded } from "../../embedded.ts";
import { NOW, unit, wordsOnly } from "../../store-fixture.ts";

const id = (number: number): string => number.toString(16).padStart(24, "f");

/** Adds to a store what the contract suites remove again, what older versions wrote, and texts that are hard to copy. */
export async function addRest(path: string): Promise<void> {
  const store = await openSqliteStore({ path });
  await addRecords(store, (await store.records.ensureAccount("rest")).id, 1);
  await store.close();
  const db = new Database(path);
  db.exec(`
    UPDATE chunk SET line = NULL WHERE row = (SELECT max(row) FROM chunk);
    UPDATE chat_turn SET reads = NULL WHERE number = (SELECT max(number) FROM chat_turn)`);
  db.close();
}

/** Adds records of kinds that other tests remove. */
export async function addRecords(store: Store, accountId: string, from: number): Promise<void> {
  const { records } = store;
  const [first, second] = [id(from + 1), id(from + 2)];
  await records.addEndpoint(
    {
      accountId,
      id: id(from),
      url: "https://rest.example/",
      description: "",
      events: [],
      secrets: [{ secret: "whsec_AAAA", untilMs: null }],
      enabled: true,
      nowIso: NOW,
    },
    9,
  );
  const content = "tide \u0000 and \u001A moon\n\nthe harbour \u{1F30A} \u00E9";
  const resource: Omit<NewResource, "id" | "content"> = {
    accountId,
    tier: "high_accuracy",
    ownerId: "ann",
    origin: "content",
    title: "A \u0000 title",
    description: "",
    url: null,
    settings: DEFAULT_SETTINGS,
    createdAt: NOW,
  };
  const metadata = {
    path: "a\u0000.md",
    yes: true,
    none: null,
    number: 1.5,
    many: ["x", "y"],
    deep: { a: 1 },
  };
  const { spans } = wordsOnly(content);
  const vectors = spans.map((_, at) => unit([1, at, 0.5]));
  const sentences = vectors.map((vector) => [vector, unit([0, 1, 1])]);
  const request = { key: `key ${from}`, bodySha256: "a".repeat(64), status: 201, nowMs: Date.parse(NOW) };
  await records.createResource({ ...resource, id: first, content, metadata }, { spans }, { request });
  await putEmbedded(store, { accountId, id: first }, { spans, vectors, fingerprint: "rest", sentences });
  const body = JSON.stringify({ content, version: 1 });
  await records.enqueueCreate(
    { ...resource, id: second, content: "" },
    { body, nowMs: Date.parse(NOW), jobsMax: 1000 },
  );
  const batch = { accountId, id: id(from + 3), kind: "retry", resourceIds: [first, second] } as const;
  await records.addBatch({ ...batch, nowIso: NOW, openMax: 9, keptMax: 9 });
  await records.addUsage({ accountId, hour: 7, documents: 1, queued: 2, searches: [3, 4] });
  const call = { accountId, spender: "chat", day: "2026-11-24", nanos: 5 } as const;
  await records.spend({ ...call, dayMax: null, monthMax: null });
}

const QUERIES = ["tide", "the harbour", "one two three", "wrods"];
const OWNERS = ["ann", "bob"];

/** Reads a store through its ports. */
export async function readAll({ records, index, queue }: Store) {
  const found: unknown[] = [];
  let hits = 0;
  const search = async (scope: Scope): Promise<void> => {
    for (const query of QUERIES) {
      const nearest = { vector: unit([1, 0.2, 0.4]), fingerprint: "rest", limit: 20 };
      const lexical = { query, limit: 20 };
      const evidence = await index.evidence({ scope, lexical, nearest, depth: 10, withChunks: true });
      hits += evidence.lexical.hits.length;
      found.push(evidence);
    }
    found.push(await index.metadataFields({ scope, after: undefined, limit: 100 }));
    found.push(await index.unfinished({ scope, vectors: { fingerprint: "rest" } }));
  };
  for (const account of await records.accounts()) {
    const accountId = account.id;
    found.push(account, await records.keys(accountId), await records.endpoints(accountId));
    found.push(await records.batches(accountId), await records.usage({ accountId, fromHour: 0 }));
    found.push(await records.newestCursor(accountId), await queue.figures("ingest", accountId));
    found.push(await records.changes({ accountId, cursor: undefined, limit: 1000 }));
    for (const ownerId of OWNERS) {
      const ids = await records.resourcesOf({ accountId, ownerId, limit: 10_000 });
      for (const each of ids.toSorted().slice(0, 50)) {
        const at = { accountId, id: each };
        found.push(await records.resource(at), await records.chunks(at));
      }
      if (ids.length === 0) continue;
      for (const { id: collectionId } of await records.collections(accountId))
        await search({ accountId, collectionId, ownerId });
    }
  }
  return { hits, found: JSON.parse(JSON.stringify(found)) as unknown };
}
