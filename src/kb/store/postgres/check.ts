import type { Finding } from "../../../lib/finding.ts";
import type { Transaction } from "./database/connections.ts";
import { nameOf, openDatabase } from "./database/database.ts";
import { readVersions, refuseUnfit, refuseUnknown } from "./database/migrate.ts";
import { queueOn } from "./queue/queue.ts";
import { overdueFindings } from "../rules.ts";
import { HNSW_INDEXES } from "./vectors/hnsw.ts";

/** The contents of a database and the problems of its server. */
export interface DatabaseReport {
  /** The database without user and password. */
  readonly name: string;
  /** Major and minor version of PostgreSQL. */
  readonly version: string;
  readonly resources: number;
  readonly chunks: number;
  readonly bytes: number;
  /** Servers that receive the log at present. */
  readonly standbys: number;
  readonly isArchived: boolean;
  readonly findings: readonly Finding[];
}

/**
 * Checks a database and what could lose its data; changes nothing. Throws as `openPostgresStore` if it cannot be used at all. The
 * load of the server is a matter of its own monitoring.
 */
export async function checkPostgres(url: string): Promise<DatabaseReport> {
  const database = openDatabase(url);
  const name = nameOf(url);
  try {
    return await database.run("snapshot", "", async (tx) => {
      await refuseUnfit(tx);
      refuseUnknown(await readVersions(tx), name);
      const facts = await readFacts(tx);
      const { overdue } = await queueOn(tx).figures("ingest", undefined, Date.now());
      return {
        ...facts,
        name,
        isArchived: facts.archiveMode !== "off",
        findings: [...overdueFindings(overdue, name), ...findingsOf(facts, name)],
      };
    });
  } finally {
    await database.close();
  }
}

interface Facts {
  readonly version: string;
  readonly resources: number;
  readonly chunks: number;
  readonly bytes: number;
  readonly standbys: number;
  readonly archiveMode: string;
  readonly isArchiveFailing: boolean;
  readonly fsync: string;
  readonly fullPageWrites: string;
  readonly synchronousCommit: string;
  readonly isEncrypted: boolean | null;
  readonly isElsewhere: boolean;
  readonly partialIndex: string | null;
}

async function readFacts(tx: Transaction): Promise<Facts> {
  const facts = await tx.get<Facts>(FACTS);
  if (facts === undefined) throw new Error("unreachable: the statement returns one row");
  return facts;
}

const FACTS = `SELECT
  split_part(current_setting('server_version'), ' ', 1) AS version,
  (SELECT coalesce(sum(resources), 0)::bigint FROM scope) AS resources,
  (SELECT coalesce(sum(chunks), 0)::bigint FROM scope) AS chunks,
  pg_database_size(current_database()) AS bytes,
  (SELECT count(*) FROM pg_stat_replication) AS standbys,
  current_setting('archive_mode') AS "archiveMode",
  (SELECT coalesce(last_failed_time > last_archived_time, last_failed_time IS NOT NULL) FROM pg_stat_archiver) AS "isArchiveFailing",
  current_setting('fsync') AS fsync,
  current_setting('full_page_writes') AS "fullPageWrites",
  current_setting('synchronous_commit') AS "synchronousCommit",
  (SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()) AS "isEncrypted",
  coalesce(NOT inet_server_addr() <<= '127.0.0.0/8' AND inet_server_addr() <> '::1', false) AS "isElsewhere",
  (SELECT name FROM (${HNSW_INDEXES}) AS hnsw WHERE NOT "isValid" AND NOT "isInProgress" LIMIT 1) AS "partialIndex"`;

/** A problem of a server, the facts that show it, and what a person can do. */
interface Rule {
  readonly check: string;
  readonly level: Finding["level"];
  readonly applies: (facts: Facts) => boolean;
  readonly message: string | ((facts: Facts) => string);
  readonly remedy: string;
}

const RULES: readonly Rule[] = [
  {
    check: "durability",
    level: "failure",
    applies: ({ fsync, fullPageWrites }) => fsync === "off" || fullPageWrites === "off",
    message: "a power failure damages the database: fsync or full_page_writes is off",
    remedy: "Turn both on, and reload PostgreSQL.",
  },
  {
    check: "acknowledged",
    level: "warning",
    applies: ({ synchronousCommit }) => synchronousCommit === "off",
    message: "a crash of the database loses what was acknowledged a moment before: synchronous_commit is off",
    remedy: "Turn it on for this database: ALTER DATABASE … SET synchronous_commit = on",
  },
  {
    check: "archive",
    level: "failure",
    applies: ({ archiveMode, isArchiveFailing }) => archiveMode !== "off" && isArchiveFailing,
    message:
      "PostgreSQL cannot archive its log: a restore would end before the present, and the log fills the disk",
    remedy: "The server's log names the cause; SELECT * FROM pg_stat_archiver shows when it began.",
  },
  {
    check: "copy",
    level: "warning",
    applies: ({ archiveMode, standbys }) => archiveMode === "off" && standbys === 0,
    message: "no standby and no archive copies the database",
    remedy: "Set one up, or run pg_dump regularly and ignore this; docs/SCALE.md says more.",
  },
  {
    check: "index",
    level: "warning",
    applies: ({ partialIndex }) => partialIndex !== null,
    message: ({ partialIndex }) =>
      `the build of the index ${partialIndex} did not end: searches do not use it, and writes pay for it`,
    remedy: "A running service builds it again within an hour. The server's log says why it ended.",
  },
  {
    check: "without-tls",
    level: "warning",
    applies: ({ isElsewhere, isEncrypted }) => isElsewhere && isEncrypted !== true,
    message: "the connection to the database is not encrypted",
    remedy: "Turn on TLS at the server, and add ?sslmode=verify-full to service.database.",
  },
];

function findingsOf(facts: Facts, subject: string): Finding[] {
  return RULES.filter(({ applies }) => applies(facts)).map(({ check, level, message, remedy }) => ({
    check: `database-${check}`,
    level,
    subject,
    message: typeof message === "string" ? message : message(facts),
    remedy,
  }));
}
