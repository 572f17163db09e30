/** Chroma's judged questions for chunking: five texts, and for each question the passages that answer it. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..", "..", "shared", "data", "chunking-eval");

/** Where an answer stands: UTF-16 offsets, end exclusive. */
export interface Passage {
  readonly corpus: string;
  readonly begin: number;
  readonly end: number;
}

/** A question and its passages, which all lie in one text. */
export interface Question {
  readonly text: string;
  readonly corpus: string;
  readonly passages: readonly Passage[];
}

/** The texts by name and the questions about them. */
export interface ChunkingData {
  readonly corpora: ReadonlyMap<string, string>;
  readonly questions: readonly Question[];
}

/** Reads the data; undefined, with a word to the reader, where it is not. */
export function readChunkingData(): ChunkingData | undefined {
  if (!existsSync(root)) {
    console.log("judged questions: skipped, ../shared/data/chunking-eval is not here");
    return undefined;
  }
  const corpora = new Map(
    readdirSync(join(root, "corpora")).map((file) => [
      file.replace(/\.md$/, ""),
      readFileSync(join(root, "corpora", file), "utf8"),
    ]),
  );
  return { corpora, questions: questionsOf(readFileSync(join(root, "questions_df.csv"), "utf8"), corpora) };
}

/** The file counts offsets in code points. */
function questionsOf(csv: string, corpora: ReadonlyMap<string, string>): Question[] {
  const offsets = new Map([...corpora].map(([corpus, text]) => [corpus, codePointOffsets(text)]));
  return csvRows(csv)
    .slice(1)
    .map(([text = "", references = "[]", corpus = ""]) => {
      // The format is fixed by the data set's checksum.
      const listed = JSON.parse(references) as { content: string; start_index: number; end_index: number }[];
      const passages = listed.map(({ content, start_index: first, end_index: last }) => {
        const begin = offsets.get(corpus)?.[first] ?? Number.NaN;
        const end = offsets.get(corpus)?.[last] ?? Number.NaN;
        if (corpora.get(corpus)?.slice(begin, end) !== content)
          throw new Error(`passage not in ${corpus}: ${content}`);
        return { corpus, begin, end };
      });
      return { text, corpus, passages };
    });
}

function codePointOffsets(text: string): number[] {
  const offsets = [0];
  let offset = 0;
  for (const character of text) offsets.push((offset += character.length));
  return offsets;
}

function csvRows(csv: string): string[][] {
  const rows: string[][] = [[]];
  for (const [, quoted, plain, ending] of csv.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/g)) {
    rows.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain ?? "");
    if (ending !== ",") rows.push([]);
  }
  return rows.filter((row) => row.length > 1);
}
