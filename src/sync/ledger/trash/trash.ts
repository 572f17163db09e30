import { createHash } from "node:crypto";
import { lstatSync } from "node:fs";
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { codeOf } from "../../../lib/failure.ts";
import { integerColumn } from "../../../lib/integer-column.ts";
import type { UnsavedText, Deletion } from "../intents/deletes.ts";
import type { Ledger } from "../ledger.ts";
import { sameIdentity } from "../../plan/moves.ts";
import { isHashOf } from "../../plan/versions.ts";
import type { Reply } from "../../send/remote/answer.ts";
import type { Remote } from "../../send/remote/remote.ts";
import { trashFolder } from "../trash.ts";
import { DiskFailure, NOTE, openSavedFile, readNote, UNFINISHED } from "./saved-file.ts";
import { shortcutText } from "../../../formats/shortcut.ts";

/** The texts of deleted files, retained for some days. */
export type Trash = ReturnType<typeof openTrash>;

/** The result of saving a text. */
export type Saved = Fetched | { readonly kind: "disk"; readonly message: string };

type Fetched = Reply<undefined> | { readonly kind: "none" };

export interface TrashOptions {
  readonly stateDir: string;
  /** Days for which a text is retained; 0: nothing is saved. */
  readonly days: number;
  readonly ledger: Ledger;
  readonly remote: Pick<Remote, "take" | "download">;
  /** Default: `TRASH_BYTES_MAX`. */
  readonly bytesMax?: number;
}

/** Maximum size of all texts; above it the oldest are evicted. A mass delete must not fill the state folder's disk. */
const TRASH_BYTES_MAX = 1024 * 1024 * 1024;

/**
 * Attempts to save one text, a minute to an hour apart and about two hours in all, before the resource is deleted without it.
 * A person wants the delete: a service that never returns a text must not keep it searchable for ever.
 */
const SAVE_TRIES = 8;

const DAY_MS = 24 * 3_600_000;
/** Minimum age of a file without a row before it is removed: a younger one may be about to get a row. */
const ORPHAN_MS = 3_600_000;
/** Rows removed in one transaction. */
const PRUNE_ROWS = 500;

/** Opens the trash of a state folder. */
export function openTrash(options: TrashOptions) {
  const { ledger, days } = options;
  const folder = trashFolder(options.stateDir);

  const save = async (
    deletion: Deletion,
    source: { readonly root: string },
    what: UnsavedText,
    signal: AbortSignal,
  ): Promise<Saved> => {
    const { docId, path } = deletion;
    ledger.flush();
    // After a crash between saving and the answer to the delete, the text is saved already.
    if (ledger.trash.has(docId)) return { kind: "done", value: undefined };
    if (isThere(join(source.root, path), what)) return { kind: "gone" };
    const name = createHash("sha256").update(docId).digest("hex").slice(0, NAME_CHARS);
    try {
      const file = await openSavedFile(folder, name);
      try {
        const reply = await fetchInto(options, deletion, what, file.write, signal);
        if (reply.kind !== "done") return reply;
        const { title, kind, hash } = what;
        const written = file.written();
        const isExact = isHashOf(hash, written.hash);
        if (kind === "file" && hash !== "" && !isExact)
          return notGiven("the uploaded file differs from what was sent");
        await makeRoom(options, folder, written.sizeBytes);
        const deletedMs = Date.now();
        const untilMs = deletedMs + days * DAY_MS;
        const { root } = source;
        const saved = { ...written, root, path, docId, name, title, kind, isExact, deletedMs, untilMs };
        await file.finish(saved);
        await ledger.write(() => ledger.trash.add(saved));
        return { kind: "done", value: undefined };
      } finally {
        await file.drop();
      }
    } catch (error) {
      if (error instanceof DiskFailure) return { kind: "disk", message: error.message };
      throw error;
    }
  };

  return {
    /** Number of attempts to save a text before its resource is deleted without it; 0 if nothing is saved. */
    tries: days > 0 ? SAVE_TRIES : 0,
    /**
     * Saves the content of a resource before the resource is deleted; durable when it returns `done`. `gone`: nothing to save,
     * because the file still exists (the rules exclude it) or the service has no such resource. `refused`: the service does
     * not return the content now. `none`: it returns the resource without one, for good. `disk`: the content cannot be
     * written.
     */
    save,
    /**
     * Removes expired texts and files without a row, and adds rows for texts of which only the note is left: the ledger with
     * their rows was lost. Stops when the signal aborts.
     */
    prune: async (stopped?: AbortSignal): Promise<void> => {
      for (;;) {
        const expired = ledger.trash.expired(Date.now(), PRUNE_ROWS);
        if (expired.length === 0 || stopped?.aborted === true) break;
        await removeAll(options, folder, expired);
      }
      await sweep(options, folder, stopped);
      await makeRoom(options, folder, 0);
    },
  };
}

/** Removes texts and their rows. */
async function removeAll(
  { ledger }: Pick<TrashOptions, "ledger">,
  folder: string,
  rows: readonly { readonly id: number; readonly name: string }[],
): Promise<void> {
  await ledger.write(() => {
    for (const { id } of rows) ledger.trash.remove(id);
  });
  // A file that cannot be removed now has no row any more, and the next pruning removes it.
  for (const { name } of rows) {
    // The note goes first. A text without a note has no owner, but a note without a text would restore a row.
    for (const each of [`${name}${NOTE}`, name])
      await rm(join(folder, each), { force: true }).catch(() => undefined);
  }
}

/** Evicts the oldest texts until this many bytes fit. */
async function makeRoom(options: TrashOptions, folder: string, bytes: number): Promise<void> {
  const { ledger, bytesMax = TRASH_BYTES_MAX } = options;
  for (;;) {
    ledger.flush();
    let over = ledger.trash.totalBytes() + bytes - bytesMax;
    if (over <= 0) return;
    const evicted = ledger.trash.oldest(PRUNE_ROWS).filter(({ sizeBytes }) => {
      if (over <= 0) return false;
      over -= sizeBytes;
      return true;
    });
    if (evicted.length === 0) return;
    await removeAll(options, folder, evicted);
  }
}

/** Writes the bytes to the sink. */
async function fetchInto(
  { remote, bytesMax = TRASH_BYTES_MAX }: TrashOptions,
  { docId, path }: Deletion,
  { title, kind, url }: UnsavedText,
  sink: (piece: Buffer) => Promise<void>,
  signal: AbortSignal,
): Promise<Fetched> {
  if (kind === "content") {
    const reply = await remote.take(docId, title, signal);
    if (reply.kind !== "done") return reply;
    const { content, metadata } = reply.value;
    if (typeof content !== "string")
      return metadata?.status === "queued" ? notGiven("the service still works on it") : { kind: "none" };
    await sink(Buffer.from(content));
    return { kind: "done", value: undefined };
  }
  if (url === undefined) return notGiven("its address is not known");
  if (kind === "link") {
    await sink(Buffer.from(shortcutText(path, url)));
    return { kind: "done", value: undefined };
  }
  return await remote.download(url, bytesMax, sink, signal);
}

/** Adds rows for texts without one, from their notes, and removes files of the trash folder that have neither. */
async function sweep(
  { ledger }: TrashOptions,
  folder: string,
  stopped: AbortSignal | undefined,
): Promise<void> {
  for (const name of await namesIn(folder)) {
    if (stopped?.aborted === true) return;
    const isUnfinished = name.endsWith(UNFINISHED);
    if (!isUnfinished && ledger.trash.knows(textOf(name))) continue;
    const note = isUnfinished ? undefined : await readNote(folder, textOf(name));
    if (note !== undefined && note.untilMs > Date.now()) {
      // Without a source in the ledger no row is added. That may return to the configuration.
      const text = await stat(join(folder, note.name)).catch(() => undefined);
      if (text?.size === note.sizeBytes) await ledger.write(() => ledger.trash.add(note));
      continue;
    }
    const path = join(folder, name);
    const found = await stat(path).catch(() => undefined);
    if (found !== undefined && Date.now() - found.mtimeMs > ORPHAN_MS) await rm(path, { force: true });
  }
}

/** Length of names in the trash: half of a SHA-256, because a document id may contain any character. */
const NAME_CHARS = 32;

/**
 * Whether this same file is still at its path, because the rules exclude it or its source was removed: then nothing is lost.
 * If that cannot be determined (a file replaced its folder, or a folder is inaccessible), the text is saved: an unnecessary
 * copy does no harm.
 */
function isThere(path: string, { entry }: UnsavedText): boolean {
  try {
    const { ino, size, mtimeMs } = lstatSync(path);
    return sameIdentity(entry, { ino: integerColumn(ino), sizeBytes: size, mtimeMs });
  } catch {
    return false;
  }
}

/** Name of the text to which a file of the trash folder belongs. */
function textOf(name: string): string {
  return name.endsWith(NOTE) ? name.slice(0, -NOTE.length) : name;
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
}

function notGiven(message: string): Reply<never> {
  return { kind: "refused", code: "not_given", message };
}
