import { filesOf, filesWords } from "../../config/schema/files.ts";
import { checkUploads } from "../../kb/uploads/check-files.ts";
import { checkStorage } from "../../kb/uploads/check-storage.ts";
import { KbsyncError } from "../../lib/failure.ts";
import type { Finding } from "../../lib/finding.ts";
import { isThere } from "../../lib/is-there.ts";
import { isOpenToOthers } from "../../lib/private-path.ts";
import { checkLedger } from "../../sync/ledger/check.ts";
import { ledgerFile } from "../../sync/ledger/ledger.ts";
import { trashFolder } from "../../sync/ledger/trash.ts";
import { checkDatabase, type OwnService, PASSWORD_FILE } from "../compose/store.ts";
import { counted, thousands } from "../../lib/counted.ts";
import { readStatus } from "../../sync/operate/status.ts";
import { searchableWords } from "../output/standing-words.ts";
import { maintainStore, storeFile } from "../state/embedded-store.ts";
import { uploadsFolder } from "../state/state-parts.ts";
import { type Check, type Checked, openFile } from "./check.ts";

const NONE: Checked = { seen: "none yet", findings: [] };

/** Checks that other users of the machine cannot read key, ledger, store, uploads and the texts of deleted files. */
export const accessCheck: Check = {
  name: "access",
  run: ({ state }) => {
    if (!isThere(state.path)) return NONE;
    if (!isOpenToOthers(state.path)) return { seen: "only its owner can open it", findings: [] };
    const open = [state.keyFile, ledgerFile(state.path), storeFile(state), uploadsFolder(state)]
      .concat(trashFolder(state.path))
      .filter(isOpenToOthers);
    const remedy =
      "The next start of `kbsync up`, `run` or `serve` closes what belongs to its user; `chmod 700` closes the folder.";
    const folder: Finding = {
      check: "access-folder",
      level: "warning",
      subject: state.path,
      message: "other users of this machine may enter the state folder",
      remedy,
    };
    const files = open.map((subject): Finding => ({
      check: "access-file",
      level: "failure",
      subject,
      message: `other users of this machine may read ${subject}`,
      remedy,
    }));
    return { seen: "open to other users", findings: [folder, ...files] };
  },
};

/** Checks the ledger's consistency. */
export const ledgerCheck: Check = {
  name: "ledger",
  run: ({ state, quick }) => {
    const report = checkLedger(state.path, { quick });
    if (report === undefined) return NONE;
    const { files, findings } = report;
    // A damaged ledger need not be readable.
    const counts = findings.length > 0 ? undefined : readStatus(state.path, 0);
    const words = counts === undefined ? counted(files, "file") : searchableWords(counts.sources);
    return { seen: words, findings };
  },
};

/** Checks the store of the embedded service: its file, or the server of its database. */
export const storeCheck: Check = {
  name: "store",
  run: async ({ config, state, env, quick }) => {
    if (!("apiUrl" in config.service) && config.service.database !== undefined)
      return await databaseSeen(config.service, env);
    const report = maintainStore(storeFile(state)).check({ quick });
    if (report === undefined) return NONE;
    const { resources, chunks, findings } = report;
    return { seen: `${counted(resources, "document")}, ${counted(chunks, "chunk")}`, findings };
  },
};

async function databaseSeen(service: OwnService, env: NodeJS.ProcessEnv): Promise<Checked> {
  let report;
  try {
    report = await checkDatabase(service, env);
  } catch (error) {
    // A database that cannot be used may be sound.
    if (!(error instanceof KbsyncError) || error.code === "store_damaged") throw error;
    const remedy = error.hint ?? "Check service.database, and the log of PostgreSQL.";
    const subject = error.subject ?? PASSWORD_FILE;
    const finding = { check: "database", level: "failure", subject, message: error.message, remedy } as const;
    return { seen: "the database cannot be used", findings: [finding] };
  }
  if (report === undefined) return NONE;
  const { version, resources, chunks, bytes, standbys, isArchived, findings } = report;
  const parts = [
    `PostgreSQL ${version}`,
    counted(resources, "document"),
    counted(chunks, "chunk"),
    `${thousands(Math.ceil(bytes / 1e6))} MB`,
    standbys === 0 ? "no standby" : counted(standbys, "standby", "standbys"),
    isArchived ? "archived" : "no archive",
  ];
  const file = service.databasePasswordFile;
  return {
    seen: parts.join(", "),
    findings: [
      ...findings,
      ...(file === undefined ? [] : openFile("database-password", file, "password file")),
    ],
  };
}

/** Compares the uploaded files of a store in the state folder with it, and checks that another storage can be used. */
export const uploadsCheck: Check = {
  name: "uploads",
  run: async ({ config: { service }, state, quick, signal }) => {
    const files = filesOf(service);
    if (files !== undefined) return { seen: filesWords(files), findings: await checkStorage(files, signal) };
    // Without a common storage each process of a database has files of its own.
    if ("apiUrl" in service || service.database !== undefined || !isThere(storeFile(state))) return NONE;
    const read = () => maintainStore(storeFile(state)).uploads();
    const findings = await checkUploads(uploadsFolder(state), read, { quick, signal });
    return { seen: counted(read().length, "file"), findings };
  },
};
