import { createHash } from "node:crypto";
import { mkdir, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { messageOf } from "../../../lib/failure.ts";
import { LocalFailure } from "../../send/remote/transport.ts";
import type { TrashedFile } from "../trash.ts";

/** A text could not be written to the trash folder. */
export class DiskFailure extends LocalFailure {
  override readonly name = "DiskFailure";
}

/** The note next to a saved text on disk. It makes the text available even if the ledger is lost. */
export type SavedNote = Omit<TrashedFile, "id" | "source">;

/** Suffix of a note's name; the rest is the name of its text. */
export const NOTE = ".json";
/** Suffix of a file that is still being written. Pruning removes what a crash leaves. */
export const UNFINISHED = ".new";

const Note = z.object({
  root: z.string(),
  path: z.string(),
  docId: z.string(),
  name: z.string(),
  title: z.string(),
  kind: z.enum(["content", "file", "link"]),
  hash: z.string(),
  isExact: z.boolean(),
  sizeBytes: z.number(),
  deletedMs: z.number(),
  untilMs: z.number(),
});

/**
 * Opens a text of the trash folder, for this user alone. It is written under a temporary name, and a text under its final name is
 * whole even after a power failure. Everything but `drop` throws `DiskFailure`.
 */
export async function openSavedFile(folder: string, name: string) {
  const path = join(folder, name);
  const temporary = `${path}${UNFINISHED}`;
  const file = await onDisk(async () => {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return await open(temporary, "w", 0o600);
  });
  const hash = createHash("sha256");
  let sizeBytes = 0;
  return {
    write: async (piece: Buffer): Promise<void> => {
      await onDisk(() => file.writeFile(piece));
      hash.update(piece);
      sizeBytes += piece.length;
    },
    /** What was written. */
    written: () => ({ hash: hash.copy().digest("hex"), sizeBytes }),
    /** Makes the text and its note durable under their names. */
    finish: async (note: SavedNote): Promise<void> =>
      onDisk(async () => {
        await file.sync();
        await rename(temporary, path);
        const beside = `${path}${NOTE}`;
        await writeFile(`${beside}${UNFINISHED}`, JSON.stringify(note), { mode: 0o600, flush: true });
        await rename(`${beside}${UNFINISHED}`, beside);
        await using above = await open(folder, "r");
        await above.sync();
      }),
    /** Closes the text, and removes it if it is unfinished. */
    drop: async (): Promise<void> => {
      await file.close().catch(() => undefined);
      await rm(temporary, { force: true });
    },
  };
}

/** Reads the note of a text; undefined if there is none, or it has another format. */
export async function readNote(folder: string, name: string): Promise<SavedNote | undefined> {
  try {
    const note = Note.parse(JSON.parse(await readFile(join(folder, `${name}${NOTE}`), "utf8")));
    return note.name === name ? note : undefined;
  } catch {
    return undefined;
  }
}

async function onDisk<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (cause) {
    throw new DiskFailure(messageOf(cause), { cause });
  }
}
