import { Client } from "pg";
import { inject } from "vitest";
import { serversFolder } from "../../../memory-folder.ts";
import { startCluster, startStandby, type Cluster } from "./cluster.ts";
import { TEMPLATE } from "./server.ts";

let made = 0;

/** Whether the tests that need a PostgreSQL server are skipped: there is none. */
export function isSkipped(): boolean {
  return "missing" in inject("postgres");
}

/** Creates a database with the tables of an empty store, or without any. Returns its address. */
export async function newDatabase(template = TEMPLATE): Promise<string> {
  made += 1;
  const name = `test_${process.pid}_${process.env["VITEST_POOL_ID"] ?? 0}_${made}`;
  // A template must not be in use: several workers copy it in turn.
  const create = `CREATE DATABASE ${name} TEMPLATE ${template}`;
  await query(addressOf("postgres"), "SELECT pg_advisory_lock(1)", create);
  return addressOf(name);
}

/** Runs statements on a connection of its own. */
export async function query(url: string, ...statements: readonly string[]): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

/** Returns the rows of a statement on a connection of its own. The caller names their type. */
export async function rowsOf<Row>(url: string, statement: string): Promise<Row[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(statement)).rows as Row[];
  } finally {
    await client.end();
  }
}

/** Starts a server that a test may stop; the test removes it. */
export function newCluster(): Cluster {
  const server = inject("postgres");
  if ("missing" in server) throw new Error(server.missing);
  return startCluster(server.programs, serversFolder());
}

/** Starts a standby of a server, which each commit waits for; the test removes it. */
export function newStandby(primary: Cluster): Cluster {
  const server = inject("postgres");
  if ("missing" in server) throw new Error(server.missing);
  return startStandby(server.programs, primary);
}

function addressOf(database: string): string {
  const server = inject("postgres");
  if ("missing" in server) throw new Error(server.missing);
  return server.address.replace(/[^/]*$/, database);
}
