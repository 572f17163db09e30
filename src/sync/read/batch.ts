import type { DocumentFields } from "../../formats/fields.ts";
import type { Recipe, RelativePath, ScanEntry } from "../plan/model.ts";
import type { Rules, WatchedSource } from "../rules/rules.ts";
import { EXTRACTOR_VERSION } from "../plan/versions.ts";
import type { ReadOutcome, SourceDocument } from "./outcome.ts";

/** Text files of one source to read together. */
export interface ReadBatch {
  readonly source: WatchedSource;
  readonly paths: readonly RelativePath[];
}

/**
 * The result of a batch, in few large pieces: between threads every object and string costs about a microsecond, and a
 * document has dozens.
 */
export interface ReadAnswer {
  /** JSON literals of the texts, concatenated, in UTF-8. */
  readonly texts: Uint8Array;
  /** End of each file's text in `texts`. A file whose end equals the previous one was not read. */
  readonly ends: Uint32Array;
  /** Size, modification time, change time, inode and time of creation of each file; NaN: not known. */
  readonly stats: Float64Array;
  /** Hash, digest, title, description and fields (as JSON; empty: none) of each file. */
  readonly words: readonly string[];
}

/** The methods of the reading thread. */
export type ReaderMethods = {
  /** Does nothing. Its answer shows that the thread is running. */
  greet(argument: undefined): void;
  read(batch: ReadBatch): Promise<ReadAnswer>;
};

const STATS = 5;
const WORDS = 5;

/** Packs the results. Omits files that are not text, which are rare: the caller reads them itself for the full result. */
export function packBatch(outcomes: readonly (ReadOutcome | undefined)[]): ReadAnswer {
  const pieces: Buffer[] = [];
  const ends = new Uint32Array(outcomes.length);
  const stats = new Float64Array(outcomes.length * STATS);
  const words: string[] = [];
  let end = 0;
  for (const [index, outcome] of outcomes.entries()) {
    if (outcome?.kind === "document" && outcome.document.kind === "content") {
      const { entry, createdMs = Number.NaN, fields, hash, digest, recipe, content } = outcome.document;
      const piece = typeof content === "string" ? Buffer.from(JSON.stringify(content)) : Buffer.from(content);
      pieces.push(piece);
      end += piece.length;
      stats.set([entry.sizeBytes, entry.mtimeMs, entry.ctimeMs, entry.ino, createdMs], index * STATS);
      words.push(hash, digest, recipe.title, recipe.description);
      words.push(fields === undefined ? "" : JSON.stringify(fields));
    } else words.push("", "", "", "", "");
    ends[index] = end;
  }
  return { texts: Buffer.concat(pieces), ends, stats, words };
}

/** Returns the document of the file at `index` of a batch; undefined if the thread did not read it. */
export function unpackDocument(
  { texts, ends, stats, words }: ReadAnswer,
  index: number,
  { path }: Pick<ScanEntry, "path">,
  rules: Rules,
): SourceDocument | undefined {
  const start = index === 0 ? 0 : (ends[index - 1] ?? 0);
  const end = ends[index] ?? start;
  if (end === start) return undefined;
  const [sizeBytes = 0, mtimeMs = 0, ctimeMs = 0, ino = 0, createdMs = Number.NaN] = stats.subarray(
    index * STATS,
    (index + 1) * STATS,
  );
  const [hash = "", digest = "", title = "", description = "", fields = ""] = words.slice(
    index * WORDS,
    (index + 1) * WORDS,
  );
  const { collection: tier, ownerId, settings } = rules.source;
  const recipe: Recipe = {
    title,
    description,
    settings,
    tier,
    ownerId,
    kind: "content",
    extractorVersion: EXTRACTOR_VERSION,
  };
  const entry = { path, sizeBytes, mtimeMs, ctimeMs, ino };
  return {
    kind: "content",
    hash,
    digest,
    sizeBytes,
    entry,
    ...(!Number.isNaN(createdMs) && { createdMs }),
    // Written by `packBatch`.
    ...(fields !== "" && { fields: JSON.parse(fields) as DocumentFields }),
    recipe,
    content: texts.subarray(start, end),
  };
}
