/**
 * Many accounts on PostgreSQL: sizes and traffic follow Zipf's law. What several processes find in their caches, and how much the busiest
 * does, if a load balancer routes each account to one process or each request to any; and whether merges keep up while documents come in.
 * The processes are modelled in one, with the real caches. With bounds as they are, everything fits; so the bounds are also scaled with
 * the data, to those of a store of ten million chunks. Run: `node bench/many-accounts.ts [ACCOUNTS] [CHUNKS]`, which takes some ten minutes.
 */
import { createHash } from "node:crypto";
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import type { ByteCache } from "../src/kb/index/words/byte-cache.ts";
import { chunkRecursive } from "../src/kb/ingest/chunk/recursive.ts";
import { search } from "../src/kb/search/search.ts";
import { SEGMENTS_MERGED } from "../src/kb/store/search/merge-rules.ts";
import type { Index, Scope } from "../src/kb/store/search-index.ts";
import { openDatabase, type Database } from "../src/kb/store/postgres/database/database.ts";
import { openPostgresStore } from "../src/kb/store/postgres/open.ts";
import type { Transaction } from "../src/kb/store/postgres/database/connections.ts";
import { makeIndexCaches, type IndexCaches } from "../src/kb/store/postgres/search/caches.ts";
import { indexOn } from "../src/kb/store/postgres/search/index-methods.ts";
import { scopesToMerge } from "../src/kb/store/postgres/words/merges.ts";
import { LIST_BYTES_MAX, makeWordCaches, PART_BYTES_MAX } from "../src/kb/store/postgres/words/word-parts.ts";
import type { Store } from "../src/kb/store/store.ts";
import { DEFAULT_SETTINGS } from "../src/wire/primitives.ts";
import { findPrograms, startCluster } from "../test/kb/store/postgres/cluster.ts";
import { createAll, makeDocuments, makeQuestions, type Document } from "./corpus.ts";
import { median, printTable, quantile } from "./report.ts";
import { mulberry32 } from "./tree.ts";

const ACCOUNTS = 10_000;
const CHUNKS = 150_000;
const PROCESSES = 4;
/** Size of the store to which the bounds of caches are scaled. */
const MODELLED_CHUNKS = 10_000_000;
/** Searches before those that are measured, and those. */
const WARM = 2000;
const MEASURED = 2000;
/** Requests that count as in flight for a balancer that bounds the load, and the most that a process has, of the mean. */
const IN_FLIGHT = 64;
const BALANCE = 1.25;
/** Accounts written to at a time. */
const LANES = 8;
/** Duration of each part in which documents come in. */
const INCOMING_MS = 45_000;
const SAMPLE_MS = 3000;
/** Scopes that become due at the same moment. */
const AT_ONCE = 250;
const TIER = "fastest";
/** Points of each process on the ring. */
const POINTS = 128;

interface Account {
  readonly id: string;
  readonly scope: Scope;
}

/** Names the process for a request of an account. */
type Route = (account: number) => number;

async function main(): Promise<void> {
  const [accounts = ACCOUNTS, chunks = CHUNKS] = process.argv.slice(2).map(Number);
  const programs = findPrograms();
  if ("missing" in programs) return console.log(programs.missing);
  const cluster = startCluster(programs.folder);
  cluster.sql("CREATE DATABASE accounts");
  const url = cluster.url("accounts");
  const store = await openPostgresStore(url);
  const database = openDatabase(url);
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const all = await makeAccounts(store, client, accounts);
    await fillAll(store, all, chunks);
    await untilMerged(database);
    await client.query("VACUUM ANALYZE");
    console.log(`\nload of the machine ${loadavg()[0]?.toFixed(1)}\n`);
    await compareRouting(database, client, all);
    await measureDebt(store, database, client, all);
    await measureDrain(store, client, all);
  } finally {
    await client.end();
    await database.close();
    await store.close();
    await cluster.remove();
  }
}

async function makeAccounts(store: Store, client: Client, count: number): Promise<Account[]> {
  await inLanes(LANES, range(count), (at) => store.records.ensureAccount(`account-${at}`));
  const { rows } = await client.query<{ account: string; collection: string }>(
    `SELECT account.id AS account, collection.id AS collection FROM account JOIN collection ON account_id = account.id
    WHERE tier = '${TIER}' ORDER BY account.id`,
  );
  return rows.map(({ account, collection }) => ({
    id: account,
    scope: { accountId: account, collectionId: collection, ownerId: "bench" },
  }));
}

/** Writes documents, so that the sizes of the accounts follow Zipf's law. Each has one document at least. */
async function fillAll(store: Store, accounts: readonly Account[], chunks: number): Promise<void> {
  const harmonic = accounts.reduce((sum, _, at) => sum + 1 / (at + 1), 0);
  const source = makeDocuments(TIER);
  let [total, largest] = [0, 0];
  const begin = performance.now();
  await inLanes(LANES, accounts.entries(), async ([at, { id }]) => {
    const wanted = chunks / harmonic / (at + 1);
    const documents: Document[] = [];
    let made = 0;
    for (let isFirst = true; isFirst || made < wanted; isFirst = false) {
      const document = source.next().value;
      documents.push(document);
      made += document.chunking.spans.length;
    }
    total += made;
    largest = Math.max(largest, made);
    await createAll(store, id, TIER, documents, () => true);
  });
  const seconds = (performance.now() - begin) / 1000;
  console.log(
    `${accounts.length} accounts, ${total} chunks, ${largest} in the largest; filled at ${(total / seconds).toFixed(0)} chunks/s`,
  );
}

async function untilMerged(database: Database): Promise<void> {
  while ((await database.run("snapshot", "", (tx) => scopesToMerge(tx, 1))).length > 0) await sleep(500);
}

/** Entries that a cache had, and those that were read into it. What a scope lacks is neither. */
interface Uses {
  hits: number;
  reads: number;
}

function counted<K, V>(cache: ByteCache<K, V>, uses: Uses): ByteCache<K, V> {
  return {
    get: (key) => {
      const found = cache.get(key);
      if (found !== undefined) uses.hits += 1;
      return found;
    },
    set: (key, value, bytes) => {
      uses.reads += 1;
      cache.set(key, value, bytes);
    },
  };
}

/** The searches of one process, with caches of its own. */
interface Process {
  readonly index: Index;
  readonly scopes: Uses;
  readonly lists: Uses;
  requests: number;
  statements: number;
}

function makeProcess(database: Database, share: number): Process {
  const words = makeWordCaches(LIST_BYTES_MAX * share, PART_BYTES_MAX * share);
  const made = {
    scopes: { hits: 0, reads: 0 },
    lists: { hits: 0, reads: 0 },
    requests: 0,
    statements: 0,
  };
  const caches: IndexCaches = {
    ...makeIndexCaches(),
    words: { lists: counted(words.lists, made.lists), scopes: counted(words.scopes, made.scopes) },
  };
  const index = new Proxy({} as Index, {
    get:
      (_, name: keyof Index) =>
      (...given: readonly [never]) =>
        database.run("snapshot", "", (tx) => {
          const counting: Transaction = {
            all: (statement, parameters) => {
              of.statements += 1;
              return tx.all(statement, parameters);
            },
            get: (statement, parameters) => {
              of.statements += 1;
              return tx.get(statement, parameters);
            },
            run: (statement, parameters) => {
              of.statements += 1;
              return tx.run(statement, parameters);
            },
          };
          return (indexOn(counting, caches)[name] as (argument: never) => Promise<never>)(...given); // a method of the port
        }),
  });
  const of: Process = { ...made, index };
  return of;
}

/** A row of the table for each way of routing, with caches as they are and with scaled ones. */
async function compareRouting(
  database: Database,
  client: Client,
  accounts: readonly Account[],
): Promise<void> {
  const { rows: sums } = await client.query<{ chunks: string }>("SELECT sum(chunks) AS chunks FROM scope");
  const scaled = Number(sums[0]?.chunks) / MODELLED_CHUNKS;
  const rows: string[][] = [];
  for (const share of [1, scaled]) {
    for (const [name, makeRoute] of ROUTES) {
      const processes = range(PROCESSES).map(() => makeProcess(database, share));
      const times = await ask(processes, makeRoute(), accounts);
      const sum = (of: (one: Process) => number): number => processes.reduce((all, one) => all + of(one), 0);
      const rate = (cache: "scopes" | "lists"): string =>
        `${((100 * sum((one) => one[cache].hits)) / sum((one) => one[cache].hits + one[cache].reads)).toFixed(0)} %`;
      rows.push([
        `${((LIST_BYTES_MAX * share) / 1e6).toFixed(1)} MB`,
        name,
        rate("scopes"),
        rate("lists"),
        (sum((one) => one.statements) / MEASURED).toFixed(1),
        [0.5, 0.99].map((of) => quantile(times, of).toFixed(1)).join(" / "),
        (Math.max(...processes.map(({ requests }) => requests)) / (MEASURED / PROCESSES)).toFixed(2),
      ]);
    }
  }
  console.log(
    `\n${PROCESSES} processes, \`fastest\`, one search at a time; scaled bounds are those of ${MODELLED_CHUNKS} chunks\n`,
  );
  printTable(
    [
      "each cache",
      "routed",
      "scopes in memory",
      "lists in memory",
      "statements a search",
      "p50 / p99, ms",
      "busiest / mean",
    ],
    rows,
  );
}

async function ask(
  processes: readonly Process[],
  route: Route,
  accounts: readonly Account[],
): Promise<number[]> {
  const random = mulberry32(0xcafe);
  const draw = zipf(accounts.length, random);
  const questions = makeQuestions("mixed", 500);
  const times: number[] = [];
  for (let at = 0; at < WARM + MEASURED; at++) {
    if (at === WARM) for (const one of processes) reset(one);
    const account = draw();
    const one = processes[route(account)];
    const scope = accounts[account]?.scope;
    const query = questions[Math.floor(random() * questions.length)] ?? "";
    if (one === undefined || scope === undefined) throw new RangeError("no such process or account");
    one.requests += 1;
    const begin = performance.now();
    await search(one.index, undefined, { scope, tier: TIER, query, topK: 5, scoreMin: undefined });
    if (at >= WARM) times.push(performance.now() - begin);
  }
  return times;
}

function reset(one: Process): void {
  one.requests = 0;
  one.statements = 0;
  for (const uses of [one.scopes, one.lists]) [uses.hits, uses.reads] = [0, 0];
}

const ROUTES: readonly (readonly [name: string, makeRoute: () => Route])[] = [
  [
    "at random",
    () => {
      const random = mulberry32(0xd1ce);
      return () => Math.floor(random() * PROCESSES);
    },
  ],
  ["by account", () => (account) => ringOrder(account)[0] ?? 0],
  [`by account, at most ${BALANCE} × the mean`, boundedRoute],
];

/** Routes to the first process of the ring that has less than its share of the requests in flight, as `hash-balance-factor` does. */
function boundedRoute(): Route {
  const flight: number[] = [];
  const load = range(PROCESSES).map(() => 0);
  return (account) => {
    const most = Math.ceil(((flight.length + 1) / PROCESSES) * BALANCE);
    const to = ringOrder(account).find((one) => (load[one] ?? 0) < most) ?? 0;
    flight.push(to);
    load[to] = (load[to] ?? 0) + 1;
    const ended = flight.length > IN_FLIGHT ? flight.shift() : undefined;
    if (ended !== undefined) load[ended] = (load[ended] ?? 0) - 1;
    return to;
  };
}

const RING = range(PROCESSES)
  .flatMap((one) => range(POINTS).map((point) => ({ one, at: hashOf(`process ${one} ${point}`) })))
  .toSorted((a, b) => a.at - b.at);
const orders = new Map<number, readonly number[]>();

/** The processes in the order in which the ring has them from an account on. */
function ringOrder(account: number): readonly number[] {
  const known = orders.get(account);
  if (known !== undefined) return known;
  const hash = hashOf(`account ${account}`);
  const first = RING.findIndex(({ at }) => at >= hash);
  const from = RING.slice(Math.max(0, first)).concat(RING.slice(0, Math.max(0, first)));
  const order = [...new Set(from.map(({ one }) => one))];
  orders.set(account, order);
  return order;
}

function hashOf(text: string): number {
  return createHash("sha1").update(text).digest().readUInt32BE();
}

/** Small documents come in, for accounts by Zipf's law, and as often for each. Prints the debt of merges over time. */
async function measureDebt(
  store: Store,
  database: Database,
  client: Client,
  accounts: readonly Account[],
): Promise<void> {
  const rows: string[][] = [];
  for (const [name, draw] of [
    ["Zipf", zipf(accounts.length, mulberry32(7))],
    ["uniform", uniform(accounts.length, mulberry32(8))],
  ] as const) {
    const endMs = performance.now() + INCOMING_MS;
    const merged = await mergesSoFar(client);
    const debts: { due: number; most: number }[] = [];
    let documents = 0;
    const lane = async (): Promise<void> => {
      while (performance.now() < endMs) {
        const { id } = accounts[draw()] ?? { id: "" };
        await createAll(store, id, TIER, smallDocuments(1), () => true);
        documents += 1;
      }
    };
    const sampling = (async () => {
      for (; performance.now() < endMs; await sleep(SAMPLE_MS)) debts.push(await debtOf(client));
    })();
    await Promise.all([...range(16).map(lane), sampling]);
    const looks = await inTurn(20, () => database.run("snapshot", "", (tx) => scopesToMerge(tx, 100)));
    rows.push([
      name,
      ((documents * 1000) / INCOMING_MS).toFixed(0),
      (((await mergesSoFar(client)) - merged) / (INCOMING_MS / 1000)).toFixed(1),
      String(Math.max(...debts.map(({ due }) => due))),
      String(debts.at(-1)?.due),
      String(Math.max(...debts.map(({ most }) => most))),
      median(looks).toFixed(1),
    ]);
  }
  console.log("\nsmall documents come in, one process merges\n");
  printTable(
    [
      "accounts",
      "documents/s",
      "merges/s",
      "most scopes due",
      "due at the end",
      "most segments of a scope",
      "a look, ms",
    ],
    rows,
  );
}

/** Many scopes become due at once: how fast does one process merge them? */
async function measureDrain(store: Store, client: Client, accounts: readonly Account[]): Promise<void> {
  const some = accounts.slice(-AT_ONCE);
  const holder =
    "SELECT pg_advisory_lock(3, scope.number::int) FROM scope JOIN collection ON collection.id = collection_id";
  await client.query(`${holder} WHERE account_id = ANY ($1)`, [some.map(({ id }) => id)]);
  await inLanes(LANES, some, ({ id }) =>
    createAll(store, id, TIER, smallDocuments(SEGMENTS_MERGED), () => true),
  );
  const { due } = await debtOf(client);
  const before = await mergesSoFar(client);
  await client.query("SELECT pg_advisory_unlock_all()");
  let begin = 0;
  for (; (await debtOf(client)).due > 0; await sleep(20))
    if (begin === 0 && (await mergesSoFar(client)) > before) begin = performance.now();
  const seconds = (performance.now() - begin) / 1000;
  const merges = (await mergesSoFar(client)) - before;
  console.log(
    `\n${due} scopes due at once, of ${SEGMENTS_MERGED} segments and more: one process makes ${merges} merges in ` +
      `${seconds.toFixed(1)} s, ${(merges / seconds).toFixed(0)}/s, then none is due`,
  );
}

async function debtOf(client: Client): Promise<{ due: number; most: number }> {
  const { rows } = await client.query<{ due: string; most: string }>(
    `SELECT count(*) FILTER (WHERE segments >= ${SEGMENTS_MERGED}) AS due, max(segments) AS most FROM scope`,
  );
  return { due: Number(rows[0]?.due), most: Number(rows[0]?.most) };
}

async function mergesSoFar(client: Client): Promise<number> {
  const { rows } = await client.query<{ merged: string }>("SELECT sum(merged) AS merged FROM scope");
  return Number(rows[0]?.merged);
}

/** Documents of one chunk. */
function smallDocuments(count: number): Document[] {
  const words = makeQuestions("mixed", 40);
  return range(count).map((at) => {
    const text = `# Note ${at}\n\n${words.slice(at % 30, (at % 30) + 8).join(". ")}.\n`;
    return {
      text,
      chunking: { spans: chunkRecursive(text, DEFAULT_SETTINGS) },
    };
  });
}

/** Draws numbers below a count, the first the most often. */
function zipf(count: number, random: () => number): () => number {
  const sums: number[] = [];
  for (let at = 0, sum = 0; at < count; at++) sums.push((sum += 1 / (at + 1)));
  const total = sums.at(-1) ?? 0;
  return () => {
    const wanted = random() * total;
    let [low, high] = [0, count - 1];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((sums[middle] ?? 0) < wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  };
}

function uniform(count: number, random: () => number): () => number {
  return () => Math.floor(random() * count);
}

async function inTurn(count: number, work: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  for (let at = 0; at < count; at++) {
    const begin = performance.now();
    await work();
    times.push(performance.now() - begin);
  }
  return times;
}

async function inLanes<T>(
  lanes: number,
  items: Iterable<T>,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const waiting = items[Symbol.iterator]();
  const lane = async (): Promise<void> => {
    for (let next = waiting.next(); next.done !== true; next = waiting.next()) await work(next.value);
  };
  await Promise.all(range(lanes).map(lane));
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, at) => at);
}

await main();
