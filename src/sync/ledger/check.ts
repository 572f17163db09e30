import { statSync } from "node:fs";
import { join } from "node:path";
import { KbsyncError } from "../../lib/failure.ts";
import type { Finding } from "../../lib/finding.ts";
import { isThere } from "../../lib/is-there.ts";
import { COUNTED_STATES } from "./sources/rows.ts";
import { trashFolder } from "./trash.ts";
import { ledgerFile } from "./ledger.ts";
import { ledgerFailure, openSqlite, type Sqlite } from "./database/open.ts";

/** The size of a ledger and what is wrong with it. */
export interface LedgerReport {
  readonly files: number;
  readonly findings: readonly Finding[];
}

/** Number of rows that are named. */
const NAMED = 3;

const RECOVER =
  "Stop the daemon and run `kbsync sync --recover`: it renames the ledger and builds a new one from what the service holds, without " +
  "sending anything twice.";

/** Queries that return nothing for a sound ledger. */
const RULES: readonly { readonly words: string; readonly sql: string }[] = [
  {
    words: "sources whose counts differ from their files",
    sql: `SELECT path AS subject FROM sources WHERE ${Object.entries(COUNTED_STATES)
      .map(
        ([column, states]) =>
          `${column} <> (SELECT count(*) FROM files WHERE source = sources.id AND state IN (${states}))`,
      )
      .join(" OR ")}`,
  },
  {
    words: "files in agreement with no resource",
    sql: "SELECT path AS subject FROM files WHERE state = 'agreed' AND doc_id IS NULL",
  },
  {
    words: "files whose resource is also marked for deletion",
    sql: `SELECT files.path AS subject FROM files JOIN intents ON intents.doc_id = files.doc_id
      WHERE intents.kind = 'delete' AND state = 'agreed'`,
  },
];

/**
 * Checks a snapshot of a state folder's ledger while the daemon may be running. Returns undefined if there is none yet.
 * Throws `path_unseen` and whatever opening throws, except for damage, which is a finding.
 */
export function checkLedger(
  stateDir: string,
  { quick = false }: { readonly quick?: boolean } = {},
): LedgerReport | undefined {
  const file = ledgerFile(stateDir);
  if (!isThere(file)) return undefined;
  let db: Sqlite | undefined;
  try {
    db = openSqlite(file, { readonly: true });
    db.exec("BEGIN");
    const findings = [...structure(db, file, quick)];
    if (findings.length === 0) findings.push(...rules(db, file), ...savedTexts(db, stateDir));
    const files = db.prepare<[], number>("SELECT count(*) FROM files").pluck().get() ?? 0;
    return { files, findings };
  } catch (error) {
    const failure = ledgerFailure(error, file);
    if (!(failure instanceof KbsyncError) || failure.code !== "ledger_damaged") throw failure;
    return { files: 0, findings: [damage("ledger-structure", file, failure.message)] };
  } finally {
    db?.close();
  }
}

function structure(db: Sqlite, file: string, quick: boolean): Finding[] {
  const lines = db.pragma(`${quick ? "quick_check" : "integrity_check"}(${NAMED})`) as Record<
    string,
    string
  >[]; // one column
  const said = lines.map((line) => Object.values(line)[0] ?? "").filter((words) => words !== "ok");
  const foreign = db.prepare<[], { table: string }>("SELECT * FROM pragma_foreign_key_check LIMIT 1").get();
  if (foreign !== undefined) said.push(`rows of the table ${foreign.table} refer to missing rows`);
  return said.map((words) => damage("ledger-structure", file, `the ledger is damaged: ${words}`));
}

function rules(db: Sqlite, file: string): Finding[] {
  return RULES.flatMap(({ words, sql }) => {
    const subjects = db.prepare<[], string>(`SELECT subject FROM (${sql})`).pluck().all();
    if (subjects.length === 0) return [];
    const more = subjects.length > NAMED ? ", …" : "";
    const named = subjects.slice(0, NAMED).join(", ");
    return [damage("ledger-rows", file, `the ledger has ${subjects.length} ${words}: ${named}${more}`)];
  });
}

/** Checks the retained texts of deleted files by their sizes. */
function savedTexts(db: Sqlite, stateDir: string): Finding[] {
  const folder = trashFolder(stateDir);
  const rows = db.prepare<[], { name: string; path: string; size: number }>(
    "SELECT name, path, size_bytes AS size FROM trash",
  );
  const lost = rows
    .all()
    .filter(({ name, size }) => statSync(join(folder, name), { throwIfNoEntry: false })?.size !== size);
  const [first] = lost;
  if (first === undefined) return [];
  return [
    {
      check: "trash",
      level: "damage",
      subject: folder,
      message: `${lost.length} saved texts of deleted files are missing or truncated, for example that of ${first.path}`,
      remedy: "`kbsync undelete` cannot restore them; an earlier backup may contain them.",
    },
  ];
}

function damage(check: string, subject: string, message: string): Finding {
  return { check, level: "damage", subject, message, remedy: RECOVER };
}
