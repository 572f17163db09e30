import { randomUUID } from "node:crypto";
import { Socket } from "node:net";
import { Client } from "pg";
import { openSharedTurns } from "../../../queue/shared-turns.ts";
import type { Claims } from "../../../queue/claims.ts";
import type { Database } from "../database/database.ts";
import { HNSW_CHUNKS_MIN, nextStep } from "./hnsw.ts";

/** Pause between checks for scopes that need an index, and of builds after a failed one: a build costs minutes, and may fail again. */
const PAUSE_MS = 60_000;
const FAILURE_PAUSE_MS = 3_600_000;
/** Longest wait for a connection. */
const CONNECT_MS = 5000;
/** The claim of the process that builds. */
const CLAIM = "hnsw";

/** Options of a builder. */
export interface HnswOptions {
  /** Chunks of a scope from which it gets an index. */
  readonly chunksMin?: number;
  /** Pause between checks, in milliseconds. */
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
  let buildsFromMs = 0;
  const buildAll = async (): Promise<void> => {
    let before = "";
    for (;;) {
      const step = await database.run("latest", "", (tx) => nextStep(tx, chunksMin));
      if (step === undefined || stop.signal.aborted) return;
      if (step.isBuild && performance.now() < buildsFromMs) return;
      // A step that was carried out and is due again has no effect: repeating it at once would not end.
      const text = step.statements.join();
      if (text === before) return;
      before = text;
      try {
        await execute(url, step.statements, stop.signal);
      } catch (error) {
        if (!step.isBuild || stop.signal.aborted) throw error;
        // Searches scan codes without the index. The next step drops what there is of it, which writes would maintain.
        buildsFromMs = performance.now() + FAILURE_PAUSE_MS;
      }
    }
  };
  let timer: NodeJS.Timeout | undefined;
  let working = Promise.resolve();
  const check = async (): Promise<void> => {
    // What fails is due again after the pause. `kbsync doctor` shows an index that is not complete.
    await turns.runIfFree(CLAIM, buildAll).catch(() => undefined);
    checkAfter();
  };
  const checkAfter = (): void => {
    if (!stop.signal.aborted) timer = setTimeout(() => void (working = check()), pauseMs).unref();
  };
  checkAfter();
  return {
    close: async () => {
      stop.abort();
      clearTimeout(timer);
      await working;
      await turns.close();
    },
  };
}

/** Ends the limits of time that a role or a database may set. Not every version has all of them. */
const UNLIMITED = `SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('statement_timeout', 'lock_timeout',
  'transaction_timeout', 'idle_session_timeout')`;

/** Executes statements on a connection of its own, which no limit of time ends. An abort cuts it at any time. */
async function execute(url: string, statements: readonly string[], signal: AbortSignal): Promise<void> {
  const socket = new Socket();
  const client = new Client({
    connectionString: url,
    stream: () => socket,
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    application_name: "kbsync index",
  });
  client.on("error", () => undefined);
  const cut = (): void => void socket.destroy(new Error("the store was closed"));
  signal.addEventListener("abort", cut, { once: true });
  try {
    await client.connect();
    for (const statement of [UNLIMITED, ...statements]) {
      if (signal.aborted) return;
      await client.query(statement);
    }
  } finally {
    await client.end();
    signal.removeEventListener("abort", cut);
  }
}
