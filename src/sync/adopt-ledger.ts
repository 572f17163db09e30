import { existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { codeOf } from "../lib/failure.ts";
import { lockFolder, stateUnusable } from "../lib/folder-lock.ts";
import { openDaemon, type DaemonOptions } from "./daemon.ts";
import type { AdoptReport } from "./adopt-source.ts";
import { ledgerFile } from "./ledger/ledger.ts";
import { openSqlite } from "./ledger/open.ts";
import type { PlannedAction } from "./preview.ts";

/** What rebuilding a ledger came to. */
export interface RecoverReport {
  /** Where the damaged ledger was put; null when it was sound, or there was none. */
  readonly setAside: string | null;
  readonly sources: readonly AdoptReport[];
  /** What the next sync will send. */
  readonly planned: readonly PlannedAction[];
}

export interface RecoverOptions {
  /** Works on a copy and leaves all as it is. */
  readonly dryRun?: boolean;
  readonly signal?: AbortSignal | undefined;
  readonly nowMs?: () => number;
}

/**
 * Rebuilds the ledger of a state folder from what the service has: one that is lost, damaged or from an old backup. A
 * damaged one is kept beside under another name. Files get the resources that are theirs; nothing is sent but lists, and
 * downloads of uploaded files whose bytes must tell. The next sync sends what differs. May be broken off at any point and
 * done again. Throws `state_locked` while a daemon works there, `list_refused`, and what `openDaemon` throws.
 */
export async function recoverLedger(
  options: DaemonOptions,
  { dryRun = false, signal, nowMs = () => Date.now() }: RecoverOptions = {},
): Promise<RecoverReport> {
  if (!dryRun) {
    const setAside = existsSync(options.stateDir) ? setAsideDamaged(options.stateDir, nowMs()) : undefined;
    return { setAside: setAside ?? null, ...(await adoptAll(options, signal)) };
  }
  const copy = mkdtempSync(join(tmpdir(), "kbsync-recover-"));
  try {
    const isDamaged = copyLedger(options.stateDir, copy);
    const came = await adoptAll({ ...options, stateDir: copy }, signal);
    return { setAside: isDamaged ? asideName(ledgerFile(options.stateDir), nowMs()) : null, ...came };
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

async function adoptAll(
  options: DaemonOptions,
  signal: AbortSignal | undefined,
): Promise<Pick<RecoverReport, "sources" | "planned">> {
  const daemon = openDaemon(options);
  try {
    const sources = await daemon.adopt(signal === undefined ? {} : { signal });
    const { planned } = await daemon.syncOnce({ dryRun: true, ...(signal !== undefined && { signal }) });
    return { sources, planned: planned ?? [] };
  } finally {
    await daemon.close();
  }
}

/** Puts a damaged ledger aside; returns where, or undefined for a sound one. */
function setAsideDamaged(stateDir: string, nowMs: number): string | undefined {
  const file = ledgerFile(stateDir);
  const lock = lockFolder(stateDir, "daemon");
  try {
    if (!existsSync(file) || isSound(file)) return undefined;
    const aside = asideName(file, nowMs);
    try {
      // The log goes first: left alone, it would be taken for that of the new ledger. Under the new name SQLite finds it.
      for (const part of ["-wal", "-shm", ""]) {
        if (existsSync(`${file}${part}`)) renameSync(`${file}${part}`, `${aside}${part}`);
      }
    } catch (error) {
      throw stateUnusable(file, error);
    }
    return aside;
  } finally {
    lock.release();
  }
}

function asideName(file: string, nowMs: number): string {
  const stamp = new Date(nowMs).toISOString().replaceAll(/[:.]/g, "-");
  return `${file}.damaged-${stamp}`;
}

/** Copies the ledger as it is now, beside whoever writes it; none is copied of a damaged one, which is told by `true`. */
function copyLedger(stateDir: string, to: string): boolean {
  const file = ledgerFile(stateDir);
  if (!existsSync(file)) return false;
  const lock = lockFolder(stateDir, "daemon");
  try {
    if (!isSound(file)) return true;
    const db = openSqlite(file);
    try {
      db.prepare("VACUUM INTO ?").run(ledgerFile(to));
    } finally {
      db.close();
    }
    return false;
  } finally {
    lock.release();
  }
}

/** Whether every page of a ledger can be read and says what it should. Throws what is no damage. */
function isSound(file: string): boolean {
  try {
    const db = openSqlite(file);
    try {
      return db.pragma("quick_check(1)", { simple: true }) === "ok";
    } finally {
      db.close();
    }
  } catch (error) {
    if (codeOf(error) === "ledger_damaged" || codeOf(error)?.startsWith("SQLITE_CORRUPT") === true)
      return false;
    throw error;
  }
}
