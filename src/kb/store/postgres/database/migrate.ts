import { KbsyncError } from "../../../../lib/failure.ts";
import type { Transaction } from "./connections.ts";
import type { Database } from "./database.ts";
import { SCHEMA, type Schema } from "./schema.ts";

/** Key of the advisory lock under which one process at a time changes tables (the bytes "kbst"). */
const LOCK = 0x6b627374;

/** The versions that the tables of a database work with. */
export interface Versions {
  /** Version of the oldest program that works with them. */
  readonly minimum: number;
  /** Version of the newest script that ran. */
  readonly maximum: number;
}

/** Version of the tables that this program knows. */
export function versionOf({ baseline, scripts }: Schema): number {
  return baseline + scripts.length - 1;
}

/** Returns the versions of a database; undefined: it has no tables of this program. */
export async function readVersions(tx: Transaction): Promise<Versions | undefined> {
  const found = await tx.get<{ readonly found: boolean }>(
    "SELECT to_regclass('schema_version') IS NOT NULL AS found",
  );
  if (found?.found !== true) return undefined;
  return tx.get<Versions>("SELECT minimum, maximum FROM schema_version");
}

/**
 * Creates the tables of a database or brings them up to date. Reads alone if they are, so that the user with whom services connect needs
 * no right to change tables then. Throws as `migrate`, and `store_unfit`.
 */
export async function bringUpToDate(database: Database, schema: Schema = SCHEMA): Promise<void> {
  const versions = await database.run("snapshot", "", async (tx) => {
    await refuseUnfit(tx);
    return readVersions(tx);
  });
  if (versions !== undefined && versions.maximum >= versionOf(schema)) refuseNewer(versions, schema);
  else await database.run("migration", "", (tx) => migrate(tx, schema));
}

/**
 * Brings the tables up to the version of this program, in the transaction of the caller: a crash leaves the old version, and of several
 * processes the first one does it. Newer tables that this program works with stay as they are. Returns the versions before.
 * Throws `store_newer`, `store_older` for tables from before the baseline, and `store_foreign` for a schema that has tables of
 * another program.
 */
export async function migrate(tx: Transaction, schema: Schema = SCHEMA): Promise<Versions | undefined> {
  await tx.run(`SELECT pg_advisory_xact_lock(${LOCK})`);
  const before = await readVersions(tx);
  if (before === undefined) {
    await refuseForeign(tx);
    await tx.run(VERSION_TABLE);
  } else {
    refuseNewer(before, schema);
    refuseBeforeBaseline(before, schema);
    if (before.maximum >= versionOf(schema)) return before;
  }
  const done = before === undefined ? 0 : before.maximum - schema.baseline + 1;
  for (const { sql } of schema.scripts.slice(done)) await tx.run(sql);
  await tx.run("UPDATE schema_version SET minimum = @minimum, maximum = @maximum", {
    minimum: schema.scripts.at(-1)?.minimum ?? 0,
    maximum: versionOf(schema),
  });
  return before;
}

/** Throws `store_newer` or `store_older` if this program does not work with the tables of a database, whose name messages contain. */
export function refuseUnknown(versions: Versions | undefined, name: string, schema: Schema = SCHEMA): void {
  const known = versionOf(schema);
  if (versions === undefined) {
    throw new KbsyncError(`the database ${name} has no tables of kbsync yet`, {
      code: "store_older",
      subject: name,
      hint: "The first service that starts creates them: `kbsync up` or `kbsync serve`",
    });
  }
  refuseBeforeBaseline(versions, schema);
  if (versions.maximum < known) {
    throw new KbsyncError(
      `the tables of the database ${name} have version ${versions.maximum}, this kbsync needs version ${known}`,
      {
        code: "store_older",
        subject: name,
        hint: "The next start of a service of this version brings them up to date.",
      },
    );
  }
  refuseNewer(versions, schema);
}

/** The oldest PostgreSQL that the store works with, as `server_version_num` names it. */
const SERVER_MIN = 15;

/** Throws `store_unfit` if the server is too old, or if the database cannot hold every text. */
export async function refuseUnfit(tx: Transaction): Promise<void> {
  const found = await tx.get<{ readonly version: number; readonly encoding: string }>(
    "SELECT current_setting('server_version_num')::int / 10000 AS version, current_setting('server_encoding') AS encoding",
  );
  if (found === undefined) return;
  const { version, encoding } = found;
  if (version < SERVER_MIN) {
    throw new KbsyncError(`the database runs on PostgreSQL ${version}, expected ${SERVER_MIN} or later`, {
      code: "store_unfit",
      hint: "Upgrade the server, or use another one.",
    });
  }
  if (encoding !== "UTF8") {
    throw new KbsyncError(`the database has the encoding ${encoding}, expected UTF8`, {
      code: "store_unfit",
      hint: "Create another one: CREATE DATABASE kbsync ENCODING 'UTF8' TEMPLATE template0",
    });
  }
}

function refuseNewer({ minimum, maximum }: Versions, schema: Schema): void {
  const known = versionOf(schema);
  if (minimum <= known) return;
  throw new KbsyncError(
    `a newer kbsync brought the database to version ${maximum}, which works with programs of version ${minimum} and later; this one has version ${known}`,
    { code: "store_newer", hint: "Install the newer kbsync." },
  );
}

function refuseBeforeBaseline({ maximum }: Versions, { baseline }: Schema): void {
  if (maximum >= baseline) return;
  throw new KbsyncError(
    `the database was made by a kbsync from before the first release: its tables have version ${maximum}, this program reads version ${baseline} and later`,
    {
      code: "store_older",
      hint: "It was left as it is. Create another database, and start with a new state folder: kbsync builds a new store from the watched folders. Documents, keys and threads that were made through the API are only in the old one.",
    },
  );
}

async function refuseForeign(tx: Transaction): Promise<void> {
  const found = await tx.get<{ readonly name: string }>(`
    SELECT relname AS name FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = current_schema() AND relkind IN ('r', 'p') LIMIT 1`);
  if (found === undefined) return;
  throw new KbsyncError(`the database has tables of another program, such as ${found.name}`, {
    code: "store_foreign",
    hint: "Use a database, or a schema, of its own.",
  });
}

const VERSION_TABLE = `
  CREATE TABLE schema_version (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    minimum integer NOT NULL,
    maximum integer NOT NULL
  );
  INSERT INTO schema_version (minimum, maximum) VALUES (0, 0);`;
