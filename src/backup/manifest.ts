import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { codeOf, KbsyncError, messageOf } from "../lib/failure.ts";

/** Format of the backups that this version makes. */
export const BACKUP_FORMAT = 1;
/** File that tells what a backup holds; written last, so that a folder without it is no backup. */
export const MANIFEST_NAME = "manifest.json";

/**
 * Names below a state folder, and the same in a backup: the ledger, kept texts, the store, uploaded files. Nothing else is
 * ever taken from a backup, and nothing leads out of the folder.
 */
const BackupPath = z
  .string()
  .regex(
    /^(?:ledger\.db|trash\/(?!\.)[^/\0]{1,255}|service\/kb\.sqlite|service\/uploads\/[A-Za-z0-9_-]{1,255})$/,
  );

/** What a backup holds. */
export const Manifest = z.object({
  format: z.literal(BACKUP_FORMAT),
  /** The program that made it. */
  kbsync: z.string(),
  madeAt: z.string(),
  /** Of this machine's state folder, for people. */
  stateDir: z.string(),
  files: z.array(
    z.object({ path: BackupPath, bytes: z.int().min(0), sha256: z.string().regex(/^[0-9a-f]{64}$/) }),
  ),
  /** What the ledger and the store know and the disk had no more when the backup was made. */
  missing: z.array(z.object({ path: z.string(), reason: z.string() })),
});
export type Manifest = z.infer<typeof Manifest>;
export type BackupFile = Manifest["files"][number];

/** Reads what a backup holds. Throws `backup_invalid` and `backup_newer`. */
export function readManifest(folder: string): Manifest {
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(join(folder, MANIFEST_NAME), "utf8"));
  } catch (error) {
    const none = codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR";
    throw invalid(folder, none ? `it has no ${MANIFEST_NAME}` : messageOf(error), error);
  }
  const format = z.object({ format: z.int() }).safeParse(json);
  if (format.success && format.data.format > BACKUP_FORMAT) {
    throw new KbsyncError(
      `the backup ${folder} has format ${format.data.format}, this program knows up to ${BACKUP_FORMAT}`,
      { code: "backup_newer", subject: folder, hint: "A newer kbsync made it: use that one." },
    );
  }
  const manifest = Manifest.safeParse(json);
  if (manifest.success) return manifest.data;
  throw invalid(folder, `its ${MANIFEST_NAME} is not understood`, manifest.error);
}

function invalid(folder: string, words: string, cause: unknown): KbsyncError {
  return new KbsyncError(`${folder} is no backup of kbsync's: ${words}`, {
    code: "backup_invalid",
    subject: folder,
    hint: "Name the folder that `kbsync backup` made.",
    cause,
  });
}
