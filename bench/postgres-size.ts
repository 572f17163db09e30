/**
 * What chunks take in PostgreSQL, by table and tier, with indexes and TOAST, after merges and a vacuum. The rows of an empty store, most of
 * them empty partitions, are subtracted. Run: `node bench/postgres-size.ts [CHUNKS]`; default 20,000 in each tier.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { openPostgresStore } from "../src/kb/store/postgres/open.ts";
import { SEGMENTS_MERGED } from "../src/kb/store/search/merge-rules.ts";
import type { Tier } from "../src/wire/primitives.ts";
import { findPrograms, startCluster, type Cluster } from "../test/kb/store/postgres/cluster.ts";
import { fill, openAccount } from "./corpus.ts";
import { printTable } from "./report.ts";

const CHUNKS = 20_000;
const TIERS: readonly Tier[] = ["fastest", "moderate", "high_accuracy"];

/** Tables by what they hold. The rest is of documents. */
const KINDS: readonly (readonly [name: string, tables: RegExp])[] = [
  ["texts", /^chunk/],
  ["index of words", /^word_/],
  ["vectors", /^(vector|stale_vector)/],
  ["vectors of sentences", /^sentence_vectors/],
  ["documents and their changes", /./],
];

async function main(): Promise<void> {
  const chunks = Number(process.argv[2] ?? CHUNKS);
  const programs = findPrograms();
  if ("missing" in programs) return console.log(programs.missing);
  const cluster = startCluster(programs.folder);
  try {
    const sizes: (readonly number[])[] = [];
    let documents = 0;
    for (const tier of TIERS) {
      const measured = await measure(cluster, tier, chunks);
      sizes.push(measured.sizes.map((bytes) => bytes / measured.chunks));
      documents = measured.documents;
    }
    console.log(`\nbytes a chunk, ${chunks} chunks of ${documents} documents in each tier\n`);
    const sum = sizes.map((of) => of.reduce((all, bytes) => all + bytes, 0));
    const rows = KINDS.map(([name], at) =>
      row(
        name,
        sizes.map((of) => of[at] ?? 0),
      ),
    );
    rows.push(row("sum", sum));
    printTable(["bytes a chunk", ...TIERS.map((tier) => `\`${tier}\``)], rows);
  } finally {
    await cluster.remove();
  }
}

const row = (name: string, bytes: readonly number[]): string[] =>
  [name].concat(bytes.map((of) => of.toFixed(0)));

async function measure(cluster: Cluster, tier: Tier, chunks: number) {
  cluster.sql(`CREATE DATABASE ${tier}`);
  const url = cluster.url(tier);
  const store = await openPostgresStore(url);
  const client = new Client({ connectionString: url });
  await client.connect();
  const before = await sizesOf(client);
  const { accountId } = await openAccount(store);
  const load = await fill(store, accountId, tier, chunks);
  for (let isDue = true; isDue; await sleep(500)) {
    const { rows } = await client.query(`SELECT 1 FROM scope WHERE segments >= ${SEGMENTS_MERGED}`);
    isDue = rows.length > 0;
  }
  await store.close();
  await client.query("VACUUM FULL");
  const after = await sizesOf(client);
  await client.end();
  return { ...load, sizes: after.map((bytes, at) => bytes - (before[at] ?? 0)) };
}

/** Bytes of each kind of tables. */
async function sizesOf(client: Client): Promise<number[]> {
  const { rows } = await client.query<{ name: string; bytes: string }>(
    "SELECT relname AS name, pg_total_relation_size(oid) AS bytes FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
  );
  const sums = KINDS.map(() => 0);
  for (const { name, bytes } of rows) {
    const kind = KINDS.findIndex(([, tables]) => tables.test(name));
    sums[kind] = (sums[kind] ?? 0) + Number(bytes);
  }
  return sums;
}

await main();
