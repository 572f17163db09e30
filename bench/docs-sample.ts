/** The documentation sample of ../shared/data, as the daemon sends it, and the questions about it. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { nameText } from "../src/formats/title.ts";
import type { JudgedDocument, JudgedSet } from "./judged-sets.ts";

const folder = join(import.meta.dirname, "..", "..", "shared", "data", "docs-sample");

/** A file of the sample. */
export interface SampleDocument extends JudgedDocument {
  readonly metadata: { readonly path: string; readonly name: string };
}

/** Returns the Markdown files by path; undefined, after a message, if the sample is missing. */
export function sampleDocuments(): readonly SampleDocument[] | undefined {
  if (!existsSync(folder)) {
    console.log(`documentation sample skipped: it is not at ${folder}`);
    return undefined;
  }
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".md") && file !== "ABOUT.md")
    .toSorted()
    .map((path, at) => {
      const content = readFileSync(join(folder, path), "utf8");
      const title = nameText(content, "markdown").title ?? basename(path);
      return {
        id: String(at).padStart(24, "0"),
        title,
        content,
        metadata: { path, name: basename(path) },
      };
    });
}

const Question = z.strictObject({
  question: z.string(),
  expect: z.union([z.array(z.string()), z.string().transform((path) => [path])]),
  answer: z.string().optional(),
});
type Question = z.infer<typeof Question>;

/** Reads a file of questions beside the benchmarks. */
export function readBenchQuestions(name: string): readonly Question[] {
  return z.array(Question).parse(parse(readFileSync(join(import.meta.dirname, name), "utf8")));
}

/** Whether a text contains an answer, where any run of white space equals any other. */
export function containsAnswer(text: string, answer: string): boolean {
  const folded = (each: string): string => each.replaceAll(/\s+/g, " ").trim();
  return folded(text).includes(folded(answer));
}

/** The questions with an answer as a judged set: a chunk of an expected file is relevant if it contains the answer. */
export function documentationSet(): JudgedSet | undefined {
  const documents = sampleDocuments();
  if (documents === undefined) return undefined;
  const byId = new Map(documents.map((document) => [document.id, document]));
  const queries = readBenchQuestions("docs-questions.yaml").flatMap(({ question, expect, answer }) => {
    if (answer === undefined) return [];
    return {
      text: question,
      wanted: 1,
      relevance: ({ resourceId, start, end }: { resourceId: string; start: number; end: number }) => {
        const document = byId.get(resourceId);
        const isRelevant =
          document !== undefined &&
          expect.includes(document.metadata.path) &&
          containsAnswer(document.content.slice(start, end), answer);
        return isRelevant ? [0] : [];
      },
    };
  });
  return { name: "documentation sample", documents, parts: new Map([["all", queries]]), ranked: "chunks" };
}
