import { randomUUID } from "node:crypto";
import { Client } from "pg";
import { openSharedTurns } from "../../../queue/shared-turns.ts";
import type { Claims } from "../../../queue/claims.ts";
import type { Database } from "../database/database.ts";
import { HNSW_CHUNKS_MIN, nextStatements } from "./hnsw.ts";

/** Pause between looks for scopes that need an index, and after a failure: a build costs minutes, and may fail again. */
const PAUSE_MS = 60_000;
const FAILURE_PAUSE_MS = 3_600_000;
/** The claim of the process that builds. */
const CLAIM = "hnsw";

/** Options of a builder. */
export interface HnswOptions {
  /** Chunks of a scope from which it gets an index. */
  readonly chunksMin?: number;
  /** Pause between looks, in milliseconds. */
  readonly pauseMs?: number;
}

/** Builds HNSW indexes of large scopes, one after another, in one process of a database at a time. */
export interface HnswBuilder {
  /** Begins no further build. The server ends the one that runs by itself. */
  close(): Promise<void>;
}

/** Opens the builder of this process. It does nothing where pgvector is not installed in the database. */
export function openHnswBuilder(
  url: string,
  database: Pick<Database, "run">,
  claims: Claims,
  { chunksMin = HNSW_CHUNKS_MIN, pauseMs = PAUSE_MS }: HnswOptions = {},
): HnswBuilder {
  const stop = new AbortController();
  // A claim that cannot be renewed is lost, and two builds of one index exclude each other by its name.
  const turns = openSharedTurns(claims, randomUUID(), () => undefined);
  const buildAll = async (): Promise<void> => {
    for (;;) {
      const statements = await database.run("latest", "", (tx) => nextStatements(tx, chunksMin));
      if (statements.length === 0 || stop.signal.aborted) return;
      await execute(url, statements, stop.signal);
    }
  };
  let timer: NodeJS.Timeout | undefined;
  let working = Promise.resolve();
  const look = async (): Promise<void> => {
    let nextMs = pauseMs;
    try {
      await turns.runIfFree(CLAIM, buildAll);
    } catch {
      // Searches scan codes without the index. `kbsync doctor` shows one that is not complete.
      nextMs = Math.max(pauseMs, FAILURE_PAUSE_MS);
    }
    lookAfter(nextMs);
  };
  const lookAfter = (ms: number): void => {
    if (!stop.signal.aborted) timer = setTimeout(() => void (working = look()), ms).unref();
  };
  lookAfter(pauseMs);
  return {
    close: async () => {
      stop.abort();
      clearTimeout(timer);
      await working;
      await turns.close();
    },
  };
}

/** Executes statements on a connection of its own, which no limit of time ends. */
async function execute(url: string, statements: readonly string[], signal: AbortSignal): Promise<void> {
  const client = new Client({ connectionString: url, keepAlive: true, application_name: "kbsync index" });
  client.on("error", () => undefined);
  // Cuts the connection if a statement runs.
  const cut = (): void => void client.end().catch(() => undefined);
  try {
    await client.connect();
    signal.addEventListener("abort", cut, { once: true });
    for (const statement of statements) {
      if (signal.aborted) return;
      await client.query(statement);
    }
  } finally {
    signal.removeEventListener("abort", cut);
    if (!signal.aborted) await client.end();
  }
}
