import { KbsyncError } from "../../../../lib/failure.ts";
import type { Finding } from "../../../../lib/finding.ts";
import { isThere } from "../../../../lib/is-there.ts";
import type { StoreCheckOptions, StoreReport } from "../../maintenance.ts";
import { overdueFindings, RULES, type Rule } from "../../rules.ts";
import { type Connection, openForReading } from "../database/connection.ts";
import { wrongMetadata } from "./check-metadata.ts";
import { checkPostings } from "./check-postings.ts";
import { prepareQueueReads } from "../queue/queue.ts";
import { storeFailure } from "../database/failures.ts";
import { DamagedIndex, isSealed } from "../../../index/seal.ts";

/** Maximum rows named in a finding; a hundred thousand of them would say no more. */
const NAMED = 3;

const RESTORE =
  "`kbsync restore` replaces it by a backup. Without one: stop kbsync, move the folder `service` of the state folder away " +
  "and start again; what was synced is sent once more after `kbsync approve`.";

const WRONG_METADATA = "documents are found by filters for other metadata than they have";

/** A query that returns no row in a sound store. Each row has a `subject`; `words` explain what the rows mean. */
interface Query extends Rule {
  readonly sql: string;
}

/** Consistency rules between tables that SQLite itself cannot check. */
const QUERIES: readonly Query[] = [
  {
    ...RULES.strayChunks,
    sql: `SELECT 'chunk ' || row AS subject FROM chunk LEFT JOIN resource ON resource.number = chunk.resource
      WHERE resource.number IS NULL OR is_deleted = 1 OR row NOT BETWEEN first_row AND first_row + resource.chunks - 1`,
  },
  {
    ...RULES.missingChunks,
    sql: `SELECT 'document ' || id AS subject FROM resource
      WHERE chunks <> (SELECT count(*) FROM chunk WHERE row BETWEEN first_row AND first_row + resource.chunks - 1)`,
  },
  {
    check: "store-scopes",
    words: "documents lie outside their owner's range of rows, where no search finds them",
    sql: "SELECT 'document ' || id AS subject FROM resource WHERE chunks > 0 AND first_row >> 32 <> scope",
  },
  {
    check: "store-scopes",
    words: "owners have wrong counts, so that scores are off",
    sql: `SELECT 'owner ' || owner_id AS subject FROM scope
      WHERE chunks <> (SELECT count(*) FROM chunk WHERE row BETWEEN number << 32 AND (number << 32) + 4294967295)
        OR words <> (SELECT total(words) FROM chunk WHERE row BETWEEN number << 32 AND (number << 32) + 4294967295)
        OR resources <> (SELECT count(*) FROM resource WHERE resource.scope = scope.number AND is_deleted = 0)`,
  },
  {
    ...RULES.wrongPages,
    sql: `SELECT 'run ' || number AS subject FROM word_run WHERE (length(directory) - 4) / 8 <> (
        SELECT count(*) FROM word_page WHERE word_page.number BETWEEN word_run.number << 24 AND (word_run.number << 24) + 16777215)`,
  },
  {
    ...RULES.strayVectors,
    sql: "SELECT 'row ' || row AS subject FROM vector WHERE row NOT IN (SELECT row FROM chunk)",
  },
  {
    ...RULES.wrongVectors,
    sql: `SELECT 'row ' || row AS subject FROM vector AS one WHERE length(value) <> (
        SELECT length(value) FROM vector WHERE vector.number = (
          SELECT min(number) FROM vector WHERE vector.model = one.model))`,
  },
  {
    check: "store-metadata",
    words: "metadata for filters belongs to no live document",
    sql: `SELECT 'document number ' || resource AS subject FROM metadata_value
      WHERE resource NOT IN (SELECT number FROM resource WHERE is_deleted = 0)`,
  },
  {
    check: "store-queue",
    words: "documents are marked as waiting, but no work is queued for them",
    sql: `SELECT 'document ' || id AS subject FROM resource
      WHERE status = 'queued' AND is_deleted = 0
        AND NOT EXISTS (
          SELECT 1 FROM job WHERE queue = 'ingest' AND job.account_id = resource.account_id AND name = id)`,
  },
  {
    check: "store-queue",
    words: "work is queued for documents that are deleted",
    sql: `SELECT 'document ' || id AS subject FROM resource
      JOIN job ON queue = 'ingest' AND job.account_id = resource.account_id AND name = id
      WHERE is_deleted = 1`,
  },
  {
    ...RULES.unknownFiles,
    sql: `SELECT 'document ' || id AS subject FROM resource
      WHERE is_deleted = 0 AND file_token IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM stored_file WHERE token = file_token)`,
  },
];

/**
 * Checks a snapshot of a store file, which a service may write to at the same time. Returns undefined if the file does not
 * exist. Throws only `path_unseen`, `store_foreign`, `store_newer`, `store_older` and `store_unreachable`; damage is a
 * finding.
 */
export function checkStore(path: string, { quick = false }: StoreCheckOptions = {}): StoreReport | undefined {
  if (!isThere(path)) return undefined;
  let db: Connection | undefined;
  try {
    db = openForReading(path);
    db.exec("BEGIN");
    return reportOf(db, path, quick);
  } catch (error) {
    const failure = storeFailure(error, path);
    if (!(failure instanceof KbsyncError) || failure.code !== "store_damaged") throw failure;
    return { resources: 0, chunks: 0, findings: [{ ...damaged(path, ""), message: failure.message }] };
  } finally {
    db?.close();
  }
}

function reportOf(db: Connection, path: string, quick: boolean): StoreReport {
  const findings = [...structure(db, path, quick)];
  // The rules mean nothing if SQLite cannot read the tables.
  if (findings.length === 0) {
    findings.push(...QUERIES.flatMap((query) => violations(db, path, query)));
    const { overdue } = prepareQueueReads(db).figures("ingest", undefined, Date.now());
    findings.push(...overdueFindings(overdue, path));
    findings.push(...summarise(path, "store-metadata", WRONG_METADATA, wrongMetadata(db)));
    if (!quick && findings.every(({ level }) => level === "warning")) {
      findings.push(...wordFindings(db, path));
      findings.push(...summarise(path, "store-vectors", "runs of codes are damaged", damagedRuns(db)));
    }
  }
  const count = (sql: string): number => db.prepare<[], number>(sql).pluck().get() ?? 0;
  return {
    resources: count("SELECT count(*) FROM resource WHERE is_deleted = 0"),
    chunks: count("SELECT count(*) FROM chunk"),
    findings,
  };
}

function wordFindings(db: Connection, path: string): Finding[] {
  try {
    return checkPostings(db).map((words) => wrongTerms(path, words));
  } catch (error) {
    if (!(error instanceof DamagedIndex)) throw error;
    const message = `a part of the index of words is damaged: ${error.message}`;
    const remedy = "The next search that reads it makes the service rebuild it from the stored texts.";
    return [{ check: "store-words", level: "failure", subject: path, message, remedy }];
  }
}

/** Returns the stored runs of codes that differ from what was written. */
function* damagedRuns(db: Connection): Generator<string> {
  const runs = db.prepare<[], { number: number; data: Buffer }>("SELECT number, data FROM code_run");
  for (const { number, data } of runs.iterate()) if (!isSealed(data)) yield `run ${number}`;
}

function structure(db: Connection, path: string, quick: boolean): Finding[] {
  const pragma = quick ? "quick_check" : "integrity_check";
  const lines = db.pragma(`${pragma}(${NAMED})`) as Record<string, string>[]; // one column, named as the pragma
  const messages = lines.map((line) => Object.values(line)[0] ?? "").filter((words) => words !== "ok");
  const foreign = db.prepare<[], { table: string }>("SELECT * FROM pragma_foreign_key_check LIMIT 1").get();
  const findings = messages.map((words) => damaged(path, words));
  if (foreign !== undefined)
    findings.push(damaged(path, `rows of the table ${foreign.table} refer to rows that are gone`));
  return findings;
}

function violations(db: Connection, path: string, { check, words, sql }: Query): Finding[] {
  return summarise(
    path,
    check,
    words,
    db.prepare<[], string>(`SELECT subject FROM (${sql})`).pluck().iterate(),
  );
}

/** Makes one finding of all subjects, which names the first ones. */
function summarise(path: string, check: string, words: string, subjects: Iterable<string>): Finding[] {
  const named: string[] = [];
  let count = 0;
  for (const subject of subjects) {
    count += 1;
    if (named.length < NAMED) named.push(subject);
  }
  if (count === 0) return [];
  const message = `${count} ${words}: ${named.join(", ")}${count > NAMED ? ", …" : ""}`;
  return [{ check, level: "damage", subject: path, message, remedy: RESTORE }];
}

function wrongTerms(path: string, words: string): Finding {
  return { check: "store-words", level: "damage", subject: path, message: words, remedy: RESTORE };
}

function damaged(path: string, words: string): Finding {
  return {
    check: "store-structure",
    level: "damage",
    subject: path,
    message: `the store file is damaged: ${words}`,
    remedy: RESTORE,
  };
}
