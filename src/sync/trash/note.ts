import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { TrashedFile } from "../ledger/trash.ts";
import { openTrashWriter } from "./trash-writer.ts";

/** What is known of a kept text, beside it on disk: the ledger may be lost, and the text is to be found again all the same. */
export type KeptNote = Omit<TrashedFile, "id" | "source">;

/** End of the name of a note; the rest is the name of its text. */
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

/** Writes the note of a text, durable when it resolves. */
export async function writeNote(folder: string, note: KeptNote): Promise<void> {
  const writer = await openTrashWriter(folder, `${note.name}${NOTE}`);
  try {
    await writer.write(Buffer.from(JSON.stringify(note)));
    await writer.finish();
  } finally {
    await writer.drop();
  }
}

/** Reads the note of a text. Undefined: there is none, or it is not ours. */
export async function readNote(folder: string, name: string): Promise<KeptNote | undefined> {
  try {
    const note = Note.parse(JSON.parse(await readFile(join(folder, `${name}${NOTE}`), "utf8")));
    return note.name === name ? note : undefined;
  } catch {
    return undefined;
  }
}
