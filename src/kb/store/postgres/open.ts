import assert from "node:assert/strict";
import { openTurns } from "../../../lib/turns.ts";
import { accountOf, answerMethods, makeMethods, METHODS, type Kind } from "../methods.ts";
import { openRebuilds } from "../rebuilds.ts";
import type { Ports, Store } from "../store.ts";
import type { Mode, Transaction } from "./database/connections.ts";
import { nameOf, openDatabase, type DatabaseListener } from "./database/database.ts";
import { bringUpToDate } from "./database/migrate.ts";
import { openClaims } from "./queue/claims.ts";
import { openTokenBuckets } from "./queue/token-buckets.ts";
import { operationsOn } from "./operations.ts";
import { groupCreatesOn } from "./resources/group-creates.ts";
import { rebuildDamaged } from "./resources/rebuild.ts";
import { makeIndexCaches } from "./search/caches.ts";
import { openNotices } from "./notices/notices.ts";
import { openHnswBuilder, type HnswOptions } from "./vectors/hnsw-builder.ts";
import { openMerging, purgeRemoved } from "./words/merging.ts";

/**
 * Opens a store in a PostgreSQL database, which any number of processes may use at a time. Creates its tables, or brings them up to date.
 * Throws as `bringUpToDate`, `store_unreachable`, and `store_busy` while the database does not answer.
 */
export async function openPostgresStore(
  url: string,
  listener?: DatabaseListener,
  hnsw: HnswOptions = {},
): Promise<Store> {
  const database = openDatabase(url, listener);
  try {
    await bringUpToDate(database);
  } catch (error) {
    await database.close();
    throw error;
  }
  const turns = openTurns();
  const caches = makeIndexCaches(hnsw.chunksMin);
  const rebuilds = openRebuilds((accountId, signal) => rebuildDamaged(database, accountId, signal));
  const grouped = { records: groupCreatesOn(database, nameOf(url)), queue: {}, index: {} };
  const methods = makeMethods(KINDS, (port, name, method) => (...given) => {
    const named = { port, name, given };
    const accountId = accountOf(method, given);
    const run = async (): Promise<unknown> => {
      if (Object.hasOwn(grouped[port], name)) return answerMethods(grouped)(named);
      return database.run(modeOf(port, name, method.kind), accountId, async (tx) =>
        answerMethods(operationsOn(tx, caches))(named),
      );
    };
    const record = isWrite(method.kind) ? recordOf(given[0]) : undefined;
    const call = record === undefined ? run() : turns.run(record, run);
    return rebuilds.watch(accountId, call);
  }) as unknown as Ports; // every method of the ports has one of the kinds
  const closing = new AbortController();
  const merging = openMerging(database);
  const notices = openNotices(url, database);
  const claims = openClaims((work) => database.run("single", "", work));
  const builder = openHnswBuilder(url, database, claims, hnsw);
  return {
    ...methods,
    notices,
    // The server overwrites removed rows after its own vacuum; its log and its copies are the business of its operator.
    scrub: (accountId) => rebuilds.watch(accountId, purgeRemoved(database, accountId, closing.signal)),
    claims,
    buckets: openTokenBuckets((work) => database.run("single", "", work)),
    clockMs: () => database.run("single", "", readClock),
    problem: () => database.problem(),
    close: async () => {
      closing.abort();
      await notices.close();
      await builder.close();
      await merging.close();
      await rebuilds.close();
      await database.close();
    },
  };
}

async function readClock(tx: Transaction): Promise<number> {
  const found = await tx.get<{ readonly nowMs: number }>(
    `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS "nowMs"`,
  );
  assert(found !== undefined);
  return found.nowMs;
}

function isWrite(kind: Kind): boolean {
  return kind === "write" || kind === "free";
}

/**
 * Returns the resource or the thread that a write is about. Writes of this process to one record run in the order of the calls; those that wait for each
 * other's locks would take connections from others.
 */
function recordOf(argument: unknown): string | undefined {
  const { accountId, id, agentId, threadId } = (argument ?? {}) as Named;
  if (accountId === undefined) return undefined;
  if (threadId !== undefined) return JSON.stringify([accountId, agentId, threadId]);
  return id === undefined ? undefined : JSON.stringify([accountId, id]);
}

/** The fields by which an argument of the ports names a record. */
interface Named {
  readonly accountId?: string;
  readonly id?: string;
  readonly agentId?: string;
  readonly threadId?: string;
}

const KINDS: readonly Kind[] = ["lookup", "read", "scan", "write", "free"];

/** How a method of each kind runs. On a server of its own a full disk is the business of its operator, so `free` is a write. */
const MODES: Readonly<Record<Kind, Mode>> = {
  lookup: "single",
  read: "snapshot",
  scan: "snapshot",
  write: "write",
  free: "write",
};

function modeOf(port: keyof Ports, name: string, kind: Kind): Mode {
  // It scans much, and then switches the scopes that it found.
  if (port === "index" && name === ("serveComplete" satisfies keyof typeof METHODS.index)) return "write";
  return MODES[kind];
}
