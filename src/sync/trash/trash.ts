import { createHash } from "node:crypto";
import { lstatSync } from "node:fs";
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { codeOf, messageOf } from "../../lib/failure.ts";
import { integerColumn } from "../../lib/integer-column.ts";
import type { Keep, Deletion } from "../ledger/intents.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { sameIdentity } from "../plan/moves.ts";
import type { Reply } from "../remote/answer.ts";
import type { Remote } from "../remote/remote.ts";
import { openTrashWriter, UNFINISHED } from "./trash-writer.ts";
import { trashFolder } from "../ledger/trash.ts";
import { NOTE, readNote, writeNote } from "./note.ts";
import { shortcutText } from "./shortcut.ts";

/** The texts of deleted files, kept for some days. */
export interface Trash {
  /** How often it is tried to keep a text before its resource goes without it; 0: nothing is kept. */
  readonly tries: number;
  /**
   * Keeps what a resource holds before it is deleted; on disk when it says so. `gone`: there is nothing to keep, for the
   * file is still there (the rules leave it out) or the service has no such resource. `refused`: the service does not
   * give it, now. `disk`: it cannot be written.
   */
  keep(deletion: Deletion, source: { readonly root: string }, keep: Keep, signal: AbortSignal): Promise<Kept>;
  /** Gives texts that no row knows of their rows again, by their notes: the ledger that knew them was lost. */
  restore(signal?: AbortSignal): Promise<void>;
  /** Restores, and removes what is older than its days, and what no row knows of, until the signal aborts. */
  prune(signal?: AbortSignal): Promise<void>;
}

/** What came of keeping a text. */
export type Kept = Reply<undefined> | { readonly kind: "disk"; readonly message: string };

export interface TrashOptions {
  readonly stateDir: string;
  /** Days that a text is kept; 0: none is. */
  readonly days: number;
  readonly ledger: Ledger;
  readonly remote: Pick<Remote, "take" | "download">;
  /** Default: `TRASH_BYTES_MAX`. */
  readonly bytesMax?: number;
}

/** All kept texts together; beyond it the oldest go first. A mass delete must not fill the disk of the state folder. */
export const TRASH_BYTES_MAX = 1024 * 1024 * 1024;

/**
 * How often keeping one text may fail, from a minute to an hour apart and some two hours in all, before the resource is
 * deleted without it. A person wants the delete: a service that never gives a text back must not keep it in search for
 * ever.
 */
export const KEEP_TRIES = 8;

const DAY_MS = 24 * 3_600_000;
/** A file that no row knows of may be about to get one. */
const ORPHAN_MS = 3_600_000;
/** Rows pruned in one transaction. */
const PRUNE_ROWS = 500;

/** Opens the trash of a state folder. */
export function openTrash(options: TrashOptions): Trash {
  const { ledger, remote, days, bytesMax = TRASH_BYTES_MAX } = options;
  const folder = trashFolder(options.stateDir);

  const removeAll = async (
    rows: readonly { readonly id: number; readonly name: string }[],
  ): Promise<void> => {
    await ledger.write(() => {
      for (const { id } of rows) ledger.trash.remove(id);
    });
    // What cannot be removed now is no row's any more, and is removed with the next pruning.
    for (const { name } of rows) {
      // The note goes first: a text without one is nobody's, a note without a text would be taken for one.
      for (const each of [`${name}${NOTE}`, name])
        await rm(join(folder, each), { force: true }).catch(() => undefined);
    }
  };
  /** Makes room for so many bytes. */
  const makeRoom = async (bytes: number): Promise<void> => {
    for (;;) {
      ledger.flush();
      let over = ledger.trash.totalBytes() + bytes - bytesMax;
      if (over <= 0) return;
      const leaving = ledger.trash.oldest(PRUNE_ROWS).filter(({ sizeBytes }) => {
        if (over <= 0) return false;
        over -= sizeBytes;
        return true;
      });
      if (leaving.length === 0) return;
      await removeAll(leaving);
    }
  };

  /** Gives the bytes to the sink. */
  const pour = async (
    { docId, path }: Deletion,
    { title, kind, hash, entry, url }: Keep,
    sink: (piece: Buffer) => Promise<void>,
    signal: AbortSignal,
  ): Promise<Reply<undefined>> => {
    if (kind === "content") {
      const reply = await remote.take(docId, title, signal);
      if (reply.kind !== "done") return reply;
      const { content } = reply.value;
      if (typeof content !== "string") return notGiven("the service's answer has no text of it");
      await sink(Buffer.from(content));
      return { kind: "done", value: undefined };
    }
    if (url === undefined) return notGiven("its address is not known");
    if (kind === "link") {
      await sink(Buffer.from(shortcutText(path, url)));
      return { kind: "done", value: undefined };
    }
    const digest = createHash("sha256");
    const hashed = async (piece: Buffer): Promise<void> => {
      digest.update(piece);
      await sink(piece);
    };
    const reply = await remote.download(url, entry.sizeBytes, hashed, signal);
    if (reply.kind !== "done" || hash === "" || digest.digest("hex") === hash) return reply;
    return notGiven("the uploaded file is another one than was sent");
  };

  const keep: Trash["keep"] = async (deletion, source, what, signal) => {
    const { docId, path } = deletion;
    ledger.flush();
    // A crash after it was kept and before its delete was answered: once is enough.
    if (ledger.trash.has(docId)) return { kind: "done", value: undefined };
    if (isThere(join(source.root, path), what)) return { kind: "gone" };
    const size = what.entry.sizeBytes;
    if (size > bytesMax)
      return notGiven(`its ${size} bytes are more than the ${bytesMax} that are kept of all`);
    const name = createHash("sha256").update(docId).digest("hex").slice(0, NAME_CHARS);
    let diskFailure: unknown;
    const onDisk = async <T>(act: () => Promise<T>): Promise<T> => {
      try {
        return await act();
      } catch (error) {
        diskFailure = error;
        throw error;
      }
    };
    let writer: Awaited<ReturnType<typeof openTrashWriter>> | undefined;
    try {
      await makeRoom(size);
      const file = await onDisk(() => openTrashWriter(folder, name));
      writer = file;
      const write = (piece: Buffer): Promise<void> => onDisk(() => file.write(piece));
      const reply = await pour(deletion, what, write, signal);
      if (diskFailure !== undefined) return disk(diskFailure);
      if (reply.kind !== "done") return reply;
      const written = await onDisk(() => file.finish());
      const deletedMs = Date.now();
      const untilMs = deletedMs + days * DAY_MS;
      const { title, kind, hash } = what;
      const isExact = hash === written.hash;
      const { root } = source;
      const kept = { ...written, root, path, docId, name, title, kind, isExact, deletedMs, untilMs };
      await onDisk(() => writeNote(folder, kept));
      await ledger.write(() => ledger.trash.add(kept));
      return { kind: "done", value: undefined };
    } catch (error) {
      if (diskFailure === undefined) throw error;
      return disk(diskFailure);
    } finally {
      await writer?.drop();
    }
  };

  const restore: Trash["restore"] = async (stopped) => {
    for (const name of await namesIn(folder)) {
      if (stopped?.aborted === true) return;
      if (!name.endsWith(NOTE) || ledger.trash.knows(textOf(name))) continue;
      const note = await readNote(folder, textOf(name));
      if (note === undefined || note.untilMs <= Date.now()) continue;
      const text = await stat(join(folder, note.name)).catch(() => undefined);
      if (text?.size === note.sizeBytes) await ledger.write(() => ledger.trash.add(note));
    }
  };

  return {
    tries: days > 0 ? KEEP_TRIES : 0,
    keep,
    restore,
    prune: async (stopped) => {
      for (;;) {
        const over = ledger.trash.expired(Date.now(), PRUNE_ROWS);
        if (over.length === 0 || stopped?.aborted === true) break;
        await removeAll(over);
      }
      await restore(stopped);
      await makeRoom(0);
      for (const name of await namesIn(folder)) {
        if (stopped?.aborted === true) return;
        if (!name.endsWith(UNFINISHED) && ledger.trash.knows(textOf(name))) continue;
        // Its source may come back into the configuration.
        const note = name.endsWith(UNFINISHED) ? undefined : await readNote(folder, textOf(name));
        if (note !== undefined && note.untilMs > Date.now()) continue;
        const path = join(folder, name);
        const found = await stat(path).catch(() => undefined);
        if (found !== undefined && Date.now() - found.mtimeMs > ORPHAN_MS) await rm(path, { force: true });
      }
    },
  };
}

/** Names of kept files: half of a SHA-256, for a document id may hold anything. */
const NAME_CHARS = 32;

/**
 * Whether the very file is at its path: the rules leave it out, or its source was removed; nothing is lost with it. Where
 * that cannot be told (a file has taken the place of its folder, a folder cannot be entered) the text is kept: once too
 * often does no harm.
 */
function isThere(path: string, { entry }: Keep): boolean {
  try {
    const { ino, size, mtimeMs } = lstatSync(path);
    return sameIdentity(entry, { ino: integerColumn(ino), sizeBytes: size, mtimeMs });
  } catch {
    return false;
  }
}

/** Name of the text that a file of the trash folder is, or is the note of. */
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

function disk(error: unknown): Kept {
  return { kind: "disk", message: messageOf(error) };
}
