import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { writeDurably } from "../lib/durable-file.ts";
import { MANIFEST_NAME } from "./manifest.ts";

const Known = z.object({ backups: z.array(z.object({ path: z.string(), at: z.iso.datetime() })) });

/** A backup of a state folder. */
export type KnownBackup = z.infer<typeof Known>["backups"][number];

/** Backups that are noted; the oldest make room. A daily one of ten years. */
const BACKUPS_MAX = 4000;

/** Notes a backup in its state folder, so that an erasure can name it. */
export function noteBackup(stateDir: string, backup: KnownBackup): void {
  const backups = [...knownBackups(stateDir).filter(({ path }) => path !== backup.path), backup];
  const recent = backups.slice(-BACKUPS_MAX);
  writeDurably(join(stateDir, "backups.json"), `${JSON.stringify({ backups: recent }, undefined, 2)}\n`);
}

/** Returns the noted backups that are still where they were made, or on a disk that is not mounted now. */
export function knownBackups(stateDir: string): readonly KnownBackup[] {
  const file = join(stateDir, "backups.json");
  if (!existsSync(file)) return [];
  const { backups } = Known.parse(JSON.parse(readFileSync(file, "utf8")));
  return backups.filter(({ path }) => existsSync(join(path, MANIFEST_NAME)) || !existsSync(join(path, "..")));
}
