import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { isAbsence, KbsyncError, messageOf } from "../lib/failure.ts";

/** Format of the backups of this version. */
export const BACKUP_FORMAT = 1;
/** File that lists the content of a backup. It is written last: a folder without it is no backup. */
export const MANIFEST_NAME = "manifest.json";

/**
 * Paths below a state folder and in a backup: the ledger, texts in the trash, the store, uploaded files. A restore takes
 * nothing else, and no path leads out of the folder.
 */
const BackupPath = z
  .string()
  .regex(
    /^(?:ledger\.db|trash\/(?!\.)[^/\0]{1,255}|service\/kb\.sqlite|service\/uploads\/[A-Za-z0-9_-]{1,255})$/,
  );

/** Content of a backup. */
export const Manifest = z.object({
  format: z.literal(BACKUP_FORMAT),
  /** Version of the program that made it. */
  kbsync: z.string(),
  madeAt: z.string(),
  /** Path of the original state folder, for people. */
  stateDir: z.string(),
  files: z.array(
    z.object({ path: BackupPath, bytes: z.int().min(0), sha256: z.string().regex(/^[0-9a-f]{64}$/) }),
  ),
  /** Files that the ledger or the store refer to and that were missing or damaged at the time of the backup. */
  missing: z.array(z.object({ path: z.string(), reason: z.string() })),
});
export type Manifest = z.infer<typeof Manifest>;
export type BackupFile = Manifest["files"][number];

/** Reads the manifest of a backup. Throws `backup_invalid` and `backup_newer`. */
export function readManifest(folder: string): Manifest {
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(join(folder, MANIFEST_NAME), "utf8"));
  } catch (error) {
    throw invalid(folder, isAbsence(error) ? `it has no ${MANIFEST_NAME}` : messageOf(error), error);
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

function invalid(folder: string, reason: string, cause: unknown): KbsyncError {
  return new KbsyncError(`${folder} is no backup of kbsync's: ${reason}`, {
    code: "backup_invalid",
    subject: folder,
    hint: "Name the folder that `kbsync backup` made.",
    cause,
  });
}
