import { createHash, randomUUID } from "node:crypto";
import { constants, existsSync } from "node:fs";
import { copyFile, link, lstat, mkdir, open, readFile, realpath, rm } from "node:fs/promises";
import { basename, dirname, join, relative, sep } from "node:path";
import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";
import { ledgerFile } from "../ledger/ledger.ts";
import { openSqlite } from "../ledger/open.ts";
import { openTrashRows, type TrashedFile, trashFolder } from "../ledger/trash.ts";
import type { DocumentKind } from "../plan/model.ts";
import { isConverted, kindOfName } from "../document/kinds.ts";
import { pathBelow } from "../../lib/path-below.ts";
import { outsideSources } from "../disk/source-path.ts";

/** A kept text, for a person. */
export interface TrashedText {
  /** Absolute path of the deleted file. */
  readonly path: string;
  /** When its text was kept, right before its resource was deleted: ISO 8601 UTC. */
  readonly deletedAt: string;
  /** Until when it is kept at the longest. */
  readonly until: string;
  readonly title: string;
  readonly kind: DocumentKind;
  readonly sizeBytes: number;
  /** Whether it is the deleted file's very bytes; else its text as UTF-8, or a shortcut made anew of its address. */
  readonly isExact: boolean;
}

/** What became of one path. */
export type PutBack = TrashedText &
  (
    | { readonly outcome: "restored" }
    /** There is a file of that name: it is left as it is. */
    | { readonly outcome: "exists" }
    | { readonly outcome: "failed"; readonly reason: string }
  );

/** What is kept at or below an absolute path, newest first; without a path everything. Throws `outside_sources`. */
export function listTrashed(stateDir: string, path: string | undefined): readonly TrashedText[] {
  return trashedFiles(stateDir, path).map(textOf);
}

/**
 * Puts kept texts back as files, so that the sync makes their resources again: the newest of the path, or of each path
 * below it, kept at or before `atMs` (default: now). Never over a file that is there, and never outside of the source's
 * folder, which must be there itself. Works beside a running daemon; what is put back stays in the trash until its days
 * are over. Throws `not_kept` where there is nothing, `outside_sources`, `source_missing`.
 */
export async function undelete(
  stateDir: string,
  path: string,
  atMs: number = Number.POSITIVE_INFINITY,
): Promise<readonly PutBack[]> {
  const newest = new Map<string, TrashedFile>();
  for (const kept of trashedFiles(stateDir, path)) {
    const target = join(kept.root, placeOf(kept));
    if (kept.deletedMs <= atMs && !newest.has(target)) newest.set(target, kept);
  }
  if (newest.size === 0) throw notKept(path, atMs);
  const results: PutBack[] = [];
  for (const [target, kept] of newest) {
    results.push({ ...textOf(kept), ...(await putBack(stateDir, kept, target)) });
  }
  return results;
}

/**
 * Where a kept text goes: to its file's path. The text of an office document, a mail or a page is none: it goes beside it,
 * as Markdown, for it would be a broken file under the old name.
 */
function placeOf({ path, kind, isExact }: Pick<TrashedFile, "path" | "kind" | "isExact">): string {
  return kind === "content" && !isExact && isConverted(kindOfName(basename(path))) ? `${path}.md` : path;
}

type Outcome =
  | { readonly outcome: "restored" | "exists" }
  | { readonly outcome: "failed"; readonly reason: string };

async function putBack(stateDir: string, kept: TrashedFile, target: string): Promise<Outcome> {
  try {
    const root = await realRoot(kept.root);
    if (existsSync(target)) return { outcome: "exists" };
    const bytes = await readStoredAnswer(stateDir, kept);
    const folder = await makeFolder(root, kept);
    return { outcome: await writeNew(join(folder, basename(target)), bytes) };
  } catch (error) {
    if (codeOf(error) === "source_missing") throw error;
    return { outcome: "failed", reason: messageOf(error) };
  }
}

/** The kept bytes, which must be those that were written. */
async function readStoredAnswer(stateDir: string, { name, hash }: TrashedFile): Promise<Buffer> {
  const file = join(trashFolder(stateDir), name);
  const bytes = await readFile(file);
  if (createHash("sha256").update(bytes).digest("hex") === hash) return bytes;
  throw new KbsyncError(`the kept text ${file} is damaged: it is not what was written`, {
    code: "not_kept",
    subject: file,
  });
}

/** A folder that is missing is never made: its disk may not be mounted, and the file would vanish below it. */
async function realRoot(root: string): Promise<string> {
  try {
    return await realpath(root);
  } catch (error) {
    throw new KbsyncError(`the source's folder ${root} is missing`, {
      code: "source_missing",
      subject: root,
      hint: "Bring it back, or make it, and try again.",
      cause: error,
    });
  }
}

/** The folder of a file, made part by part: a symbolic link on the way could lead out of the source. */
async function makeFolder(root: string, { path }: TrashedFile): Promise<string> {
  let folder = root;
  const parts = path.split("/").slice(0, -1);
  for (const part of parts) {
    // What the ledger holds came from a scan; a `..` in it would be no path of a disk.
    if (part === "" || part === "." || part === "..") throw new Error(`${path} is no path below a source`);
    folder = join(folder, part);
    await mkdir(folder).catch((error: unknown) => {
      if (codeOf(error) !== "EEXIST") throw error;
    });
    if (!(await lstat(folder)).isDirectory()) {
      throw new KbsyncError(`${join(root, relative(root, folder))} is no folder`, {
        code: "source_unusable",
        subject: folder,
      });
    }
  }
  return folder;
}

/**
 * Writes a file that is not there, whole or not at all: written under a hidden name, which is never synced, and linked to
 * its own, which fails where a file has appeared meanwhile. Its mode is that of any new file.
 */
async function writeNew(path: string, bytes: Buffer): Promise<"restored" | "exists"> {
  const beside = join(dirname(path), `.kbsync-${randomUUID()}`);
  const file = await open(beside, "wx", 0o644);
  try {
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await linkOrCopy(beside, path);
    return "restored";
  } catch (error) {
    if (codeOf(error) === "EEXIST") return "exists";
    throw error;
  } finally {
    await rm(beside, { force: true });
  }
}

/** Some file systems (FAT, some of the network) have no links: there the file appears while it is being copied. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    if (!["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"].includes(codeOf(error) ?? "")) throw error;
    await copyFile(from, to, constants.COPYFILE_EXCL);
  }
}

function trashedFiles(stateDir: string, path: string | undefined): readonly TrashedFile[] {
  const file = ledgerFile(stateDir);
  if (!existsSync(file)) {
    if (path === undefined) return [];
    throw outsideSources(path, []);
  }
  const db = openSqlite(file, { readonly: true });
  try {
    const rows = openTrashRows(db);
    const roots = rows.roots();
    if (path === undefined)
      return roots.flatMap((root) => rows.below(root, "")).toSorted((a, b) => b.deletedMs - a.deletedMs);
    const places = roots.flatMap((root) => {
      const below = pathBelow(root, path);
      return below === undefined ? [] : [{ root, below }];
    });
    if (places.length === 0) throw outsideSources(path, roots);
    return places.flatMap(({ root, below }) => rows.below(root, below));
  } finally {
    db.close();
  }
}

function textOf({
  root,
  path,
  deletedMs,
  untilMs,
  title,
  kind,
  sizeBytes,
  isExact,
}: TrashedFile): TrashedText {
  return {
    path: `${root}${sep}${placeOf({ path, kind, isExact })}`,
    deletedAt: new Date(deletedMs).toISOString(),
    until: new Date(untilMs).toISOString(),
    title,
    kind,
    sizeBytes,
    isExact,
  };
}

function notKept(path: string, atMs: number): KbsyncError {
  const when = Number.isFinite(atMs) ? ` from ${new Date(atMs).toISOString()} or before` : "";
  return new KbsyncError(`nothing is kept of ${path}${when}`, {
    code: "not_kept",
    subject: path,
    hint: "`kbsync undelete --list` names what is; texts are kept as long as sync.trashDays says, from then on when it was set.",
  });
}
