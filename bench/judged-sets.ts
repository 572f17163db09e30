/** Sets of documents with judged questions, from ../shared/data where that is there. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readChunkingData } from "./chunking-data.ts";

const dataFolder = join(import.meta.dirname, "..", "..", "shared", "data");
/** Share of an answer's characters that a chunk must hold to count. */
const ANSWER_SHARE = 0.5;

export interface JudgedDocument {
  /** 24 characters. */
  readonly id: string;
  readonly title: string;
  readonly content: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** A chunk as a search found it. */
export interface FoundSpan {
  readonly resourceId: string;
  readonly start: number;
  readonly end: number;
}

export interface JudgedQuery {
  readonly text: string;
  /** Which of the things to be found a chunk counts for, as their numbers; empty: it is not relevant. */
  readonly relevance: (span: FoundSpan) => readonly number[];
  /** Things to be found. */
  readonly wanted: number;
}

export interface JudgedSet {
  readonly name: string;
  readonly documents: readonly JudgedDocument[];
  /** By the name of the part. Nothing is ever fitted on `test`. */
  readonly parts: ReadonlyMap<string, readonly JudgedQuery[]>;
  /** What a ranking is a ranking of: the documents, or their chunks. */
  readonly ranked: "documents" | "chunks";
}

/** The sets that are there; says which are not. */
export function judgedSets(): JudgedSet[] {
  return [readScifact(), readPassages(), readCacm(), readStackFaq()].filter((set) => set !== undefined);
}

/** A set in BEIR's form, with its questions by part: `files` are the judgements that make one. */
function readBeir(
  name: string,
  folder: string,
  files: ReadonlyMap<string, readonly string[]>,
): JudgedSet | undefined {
  const root = join(dataFolder, folder);
  if (!existsSync(root)) {
    console.log(`${name} skipped: it is not at ${root}`);
    return undefined;
  }
  const lines = (file: string): { _id: string; title?: string; text: string }[] =>
    readFileSync(join(root, file), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { _id: string; title?: string; text: string }); // BEIR's form
  const documents = lines("corpus.jsonl");
  const ids = new Map(documents.map(({ _id: id }, at) => [id, String(at).padStart(24, "0")]));
  const questions = lines("queries.jsonl");
  const judgements = (file: string): string[][] =>
    readFileSync(join(root, "qrels", `${file}.tsv`), "utf8")
      .trim()
      .split("\n")
      .slice(1)
      .map((line) => line.split("\t"))
      .filter(([, , grade]) => Number(grade) > 0);
  const part = (rows: readonly string[][]): JudgedQuery[] => {
    const relevant = Map.groupBy(rows, ([query]) => query ?? "");
    return questions
      .filter(({ _id: id }) => relevant.has(id))
      .map(({ _id: id, text }) => {
        const wanted = (relevant.get(id) ?? []).map(([, document]) => ids.get(document ?? "") ?? "");
        return {
          text,
          wanted: wanted.length,
          relevance: ({ resourceId }) => (wanted.includes(resourceId) ? [wanted.indexOf(resourceId)] : []),
        };
      });
  };
  return {
    name,
    documents: documents.map(({ _id: id, title = "", text }) => ({
      id: ids.get(id) ?? "",
      title,
      content: title === "" ? text : `${title}\n\n${text}`,
    })),
    parts: new Map([...files].map(([each, names]) => [each, part(names.flatMap(judgements))])),
    ranked: "documents",
  };
}

/** Claims, and the abstracts that speak of them. */
function readScifact(): JudgedSet | undefined {
  return readBeir(
    "SciFact",
    "scifact",
    new Map([
      ["train", ["train"]],
      ["test", ["test"]],
    ]),
  );
}

/** Titles and abstracts about computing, and what people wanted to read about. */
function readCacm(): JudgedSet | undefined {
  return readBeir("CACM", "cacm", new Map([["all", ["test"]]]));
}

/** Answers from a forum, and their questions in other words. */
function readStackFaq(): JudgedSet | undefined {
  return readBeir("StackFAQ", "stackfaq", new Map([["all", ["train", "test"]]]));
}

/** Five long texts, and the passages that answer questions about them. */
function readPassages(): JudgedSet | undefined {
  const data = readChunkingData();
  if (data === undefined) return undefined;
  const names = [...data.corpora.keys()];
  const idOf = (name: string): string => `c${names.indexOf(name)}`.padStart(24, "0");
  const queries = data.questions.map(({ text, passages }) => ({
    text,
    wanted: passages.length,
    relevance: ({ resourceId, start, end }: FoundSpan) =>
      passages.flatMap((passage, at) => {
        const shared = Math.min(end, passage.end) - Math.max(start, passage.begin);
        const isHeld = shared >= ANSWER_SHARE * (passage.end - passage.begin);
        return isHeld && resourceId === idOf(passage.corpus) ? [at] : [];
      }),
  }));
  return {
    name: "passages of long texts",
    documents: [...data.corpora].map(([name, content]) => ({ id: idOf(name), title: name, content })),
    parts: new Map([["all", queries]]),
    ranked: "chunks",
  };
}
