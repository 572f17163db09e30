import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { TrashedFile } from "../trash.ts";
import { openTrashWriter } from "./trash-writer.ts";

/** The note next to a saved text on disk. It makes the text available even if the ledger is lost. */
export type SavedNote = Omit<TrashedFile, "id" | "source">;

/** Suffix of a note's name; the rest is the name of its text. */
export const NOTE = ".json";

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

/** Writes the note of a text. It is durable when the promise resolves. */
export async function writeNote(folder: string, note: SavedNote): Promise<void> {
  const writer = await openTrashWriter(folder, `${note.name}${NOTE}`);
  try {
    await writer.write(Buffer.from(JSON.stringify(note)));
    await writer.finish();
  } finally {
    await writer.drop();
  }
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
