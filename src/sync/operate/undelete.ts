import { createHash, randomUUID } from "node:crypto";
import { constants, existsSync } from "node:fs";
import { copyFile, link, lstat, mkdir, open, readFile, realpath, rm } from "node:fs/promises";
import { basename, dirname, join, sep } from "node:path";
import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";
import type { PutBack, TrashedText } from "../../wire/daemon-files.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { type TrashedFile, trashFolder } from "../ledger/trash.ts";
import { isConverted, kindOfName } from "../../formats/kinds.ts";
import { pathBelow } from "../../lib/path-below.ts";
import { outsideSources } from "../scan/disk/source-path.ts";

type TrashLedger = Pick<Ledger, "sources" | "trash">;

/** The texts of files at or below an absolute path, newest first; without a path all of them. Throws `outside_sources`. */
export function listTrashed(ledger: TrashLedger, path?: string): readonly TrashedText[] {
  return trashedFiles(ledger, path).map(textOf);
}

/**
 * Restores saved texts as files, so that the sync creates their resources again: the newest of the path, or of each path
 * below it, saved at or before `atMs` (default: now). Never overwrites a file, and never writes outside of the source's
 * folder, which must exist. Works while a daemon runs. Restored texts stay in the trash until they expire. Throws `not_kept`
 * if there is nothing, `outside_sources`, `source_missing`.
 */
export async function undelete(
  ledger: TrashLedger,
  stateDir: string,
  path: string,
  atMs: number = Number.POSITIVE_INFINITY,
): Promise<readonly PutBack[]> {
  const newest = new Map<string, TrashedFile>();
  for (const text of trashedFiles(ledger, path)) {
    const target = join(text.root, restoredPath(text));
    if (text.deletedMs <= atMs && !newest.has(target)) newest.set(target, text);
  }
  if (newest.size === 0) throw nothingSaved(path, atMs);
  const results: PutBack[] = [];
  for (const [target, text] of newest) {
    results.push({ ...textOf(text), ...(await putBack(stateDir, text, target)) });
  }
  return results;
}

/**
 * The path at which a text is restored: that of its file. The extracted text of an office document, mail or page goes next to
 * it, as Markdown, because it would be a broken file under the old name.
 */
function restoredPath({ path, kind, isExact }: Pick<TrashedFile, "path" | "kind" | "isExact">): string {
  return kind === "content" && !isExact && isConverted(kindOfName(basename(path))) ? `${path}.md` : path;
}

type Outcome =
  | { readonly outcome: "restored" | "exists" }
  | { readonly outcome: "failed"; readonly reason: string };

async function putBack(stateDir: string, saved: TrashedFile, target: string): Promise<Outcome> {
  try {
    const root = await realRoot(saved.root);
    if (existsSync(target)) return { outcome: "exists" };
    const bytes = await readSaved(stateDir, saved);
    const folder = await makeFolder(root, saved);
    return { outcome: await writeNew(join(folder, basename(target)), bytes) };
  } catch (error) {
    if (codeOf(error) === "source_missing") throw error;
    return { outcome: "failed", reason: messageOf(error) };
  }
}

/** Reads the saved bytes and checks that they are those that were written. */
async function readSaved(stateDir: string, { name, hash }: TrashedFile): Promise<Buffer> {
  const file = join(trashFolder(stateDir), name);
  const bytes = await readFile(file);
  if (createHash("sha256").update(bytes).digest("hex") === hash) return bytes;
  throw new KbsyncError(`the saved text ${file} is damaged: it is not what was written`, {
    code: "not_kept",
    subject: file,
  });
}

/** Never creates a missing root: its disk may not be mounted, and the mount would hide the file. */
async function realRoot(root: string): Promise<string> {
  try {
    return await realpath(root);
  } catch (error) {
    throw new KbsyncError(`the source's folder ${root} is missing`, {
      code: "source_missing",
      subject: root,
      hint: "Restore or create the folder, and try again.",
      cause: error,
    });
  }
}

/** Creates the folder of a file part by part, because a symbolic link on the path could lead out of the source. */
async function makeFolder(root: string, { path }: TrashedFile): Promise<string> {
  let folder = root;
  const parts = path.split("/").slice(0, -1);
  for (const part of parts) {
    // Paths in the ledger come from a scan, and no path on a disk contains `..`.
    if (part === "" || part === "." || part === "..") throw new Error(`${path} is not a path below a source`);
    folder = join(folder, part);
    await mkdir(folder).catch((error: unknown) => {
      if (codeOf(error) !== "EEXIST") throw error;
    });
    if (!(await lstat(folder)).isDirectory()) {
      throw new KbsyncError(`${folder} is no folder`, {
        code: "source_unusable",
        subject: folder,
      });
    }
  }
  return folder;
}

/**
 * Writes a new file, completely or not at all: under a hidden name, which is never synced, and then as a hard link, which
 * fails if a file has appeared at the path. The file gets the mode of any new file.
 */
async function writeNew(path: string, bytes: Buffer): Promise<"restored" | "exists"> {
  const temporary = join(dirname(path), `.kbsync-${randomUUID()}`);
  const file = await open(temporary, "wx", 0o644);
  try {
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await linkOrCopy(temporary, path);
    return "restored";
  } catch (error) {
    if (codeOf(error) === "EEXIST") return "exists";
    throw error;
  } finally {
    await rm(temporary, { force: true });
  }
}

/** Some file systems (FAT, some network ones) have no links: there the file is visible while it is being copied. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    if (!["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"].includes(codeOf(error) ?? "")) throw error;
    await copyFile(from, to, constants.COPYFILE_EXCL);
  }
}

function trashedFiles({ sources, trash }: TrashLedger, path: string | undefined): readonly TrashedFile[] {
  if (path === undefined) return trash.below();
  const roots = [...sources.folders().values()].toSorted();
  const targets = roots.flatMap((root) => {
    const below = pathBelow(root, path);
    return below === undefined ? [] : [{ root, below }];
  });
  if (targets.length === 0) throw outsideSources(path, roots);
  return targets.flatMap(({ root, below }) => trash.below(root, below));
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
    path: `${root}${sep}${restoredPath({ path, kind, isExact })}`,
    deletedAt: new Date(deletedMs).toISOString(),
    until: new Date(untilMs).toISOString(),
    title,
    kind,
    sizeBytes,
    isExact,
  };
}

function nothingSaved(path: string, atMs: number): KbsyncError {
  const when = Number.isFinite(atMs) ? ` from ${new Date(atMs).toISOString()} or before` : "";
  return new KbsyncError(`the trash has no text of ${path}${when}`, {
    code: "not_kept",
    subject: path,
    hint: "`kbsync undelete --list` lists its texts. Each is retained for the days that sync.trashDays set when it was deleted.",
  });
}
