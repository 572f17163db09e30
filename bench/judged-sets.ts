/** Sets of documents with judged questions, from ../shared/data where that is there. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readChunkingData } from "./chunking-data.ts";

const scifact = join(import.meta.dirname, "..", "..", "shared", "data", "scifact");
/** Share of an answer's characters that a chunk must hold to count. */
const ANSWER_SHARE = 0.5;

export interface JudgedDocument {
  /** 24 characters. */
  readonly id: string;
  readonly title: string;
  readonly content: string;
}

/** A chunk as a search found it. */
export interface FoundPlace {
  readonly resourceId: string;
  readonly start: number;
  readonly end: number;
}

export interface JudgedQuery {
  readonly text: string;
  /** Which of the things to be found a chunk counts for, as their numbers; empty: it is not relevant. */
  readonly relevance: (place: FoundPlace) => readonly number[];
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
  return [readScifact(), readPassages()].filter((set) => set !== undefined);
}

/** SciFact in BEIR's form: claims, and the abstracts that speak of them. */
function readScifact(): JudgedSet | undefined {
  if (!existsSync(scifact)) {
    console.log(`SciFact skipped: it is not at ${scifact}`);
    return undefined;
  }
  const lines = (name: string): { _id: string; title?: string; text: string }[] =>
    readFileSync(join(scifact, name), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { _id: string; title?: string; text: string }); // BEIR's form
  const idOf = (id: string): string => id.padStart(24, "0");
  const queries = lines("queries.jsonl");
  const part = (name: string): JudgedQuery[] => {
    const rows = readFileSync(join(scifact, "qrels", `${name}.tsv`), "utf8")
      .trim()
      .split("\n")
      .slice(1)
      .map((line) => line.split("\t"))
      .filter(([, , grade]) => Number(grade) > 0);
    const relevant = Map.groupBy(rows, ([query]) => query ?? "");
    return queries
      .filter(({ _id: id }) => relevant.has(id))
      .map(({ _id: id, text }) => {
        const ids = (relevant.get(id) ?? []).map(([, document]) => idOf(document ?? ""));
        return {
          text,
          wanted: ids.length,
          relevance: ({ resourceId }) => (ids.includes(resourceId) ? [ids.indexOf(resourceId)] : []),
        };
      });
  };
  return {
    name: "SciFact",
    documents: lines("corpus.jsonl").map(({ _id: id, title = "", text }) => ({
      id: idOf(id),
      title,
      content: `${title}\n\n${text}`,
    })),
    parts: new Map([
      ["train", part("train")],
      ["test", part("test")],
    ]),
    ranked: "documents",
  };
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
    relevance: ({ resourceId, start, end }: FoundPlace) =>
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
