import { readFileSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import picomatch from "picomatch";
import { z } from "zod";
import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";
import { lazyModule } from "../../lib/lazy-module.ts";
import { expectedDocuments } from "../../lib/retrieval-figures.ts";
import { jsonPath, schemaProblems } from "../../lib/schema-issue.ts";
import { compileGlob } from "../../sync/rules/globs.ts";
import { QuestionFields } from "../../wire/evaluation.ts";

/** A question with the files that answer it. */
export interface Question {
  readonly question: string;
  /** Paths below a source's folder, or globs; any of them will do. At least one. */
  readonly expect: readonly string[];
  /** Text that a passage must contain. */
  readonly answer: string | undefined;
  /** Absolute path of the only source to search. */
  readonly source: string | undefined;
  /** Line in the file, from 1. */
  readonly line: number;
}

/** Most questions of a file: a search takes up to a second, and they are asked one at a time. */
const QUESTIONS_MAX = 2000;
const FILE_BYTES_MAX = 4 * 1024 * 1024;

const parser = lazyModule((load) => load("yaml") as typeof import("yaml"));

const Path = z.string().trim().min(1).max(4096);
const QuestionsFile = z
  .array(
    z.strictObject({
      ...QuestionFields,
      source: Path.optional(),
    }),
  )
  .min(1)
  .max(QUESTIONS_MAX);

/** Reads a file of questions. Throws `questions_invalid` with line, key, expected and actual value of every problem. */
export function readQuestions(file: string): readonly Question[] {
  return parseQuestions(readText(file), file);
}

/** Parses and checks a YAML list of questions; see `readQuestions`. */
export function parseQuestions(text: string, file: string): readonly Question[] {
  const yaml = parser();
  const lines = new yaml.LineCounter();
  const document = yaml.parseDocument(text, { lineCounter: lines, prettyErrors: false });
  if (document.errors.length > 0) {
    throw invalidQuestions(
      file,
      document.errors.map(({ pos, message }) => [lines.linePos(pos[0]).line, message]),
    );
  }
  /** Returns the line of the innermost part of a JSON path that is in the file. */
  const lineAt = (parts: readonly PropertyKey[]): number => {
    for (let length = parts.length; length > 0; length--) {
      const node = document.getIn(parts.slice(0, length), true);
      const start = yaml.isNode(node) ? node.range?.[0] : undefined;
      if (start !== undefined) return lines.linePos(start).line;
    }
    return 1;
  };
  // Refuses aliases: a few lines of them can expand to gigabytes.
  const value: unknown = valueOf(() => document.toJS({ maxAliasCount: 0 }), file);
  const parsed = QuestionsFile.safeParse(value);
  if (!parsed.success) {
    const problems = schemaProblems(parsed.error, value).map(({ parts, message }) => {
      const key = jsonPath(parts.slice(1));
      return [lineAt(parts), key === "" ? message : `${key}: ${message}`] as const;
    });
    throw invalidQuestions(file, problems);
  }
  return parsed.data.map(({ question, expect, answer, source }, index) => ({
    question,
    expect,
    answer,
    source: source === undefined ? undefined : resolve(dirname(file), source),
    line: lineAt([index]),
  }));
}

/** Returns whether a file, by its path below the source, is one of the expected ones. */
export function expectedFiles({ expect }: Pick<Question, "expect">): (path: string) => boolean {
  return expectedDocuments(expect, (text) => {
    const glob = isGlob(text) ? compileGlob(text) : undefined;
    return glob && ((path) => glob.matchesFile(path));
  });
}

/** Whether an expectation may match several files. */
export function isGlob(expected: string): boolean {
  return picomatch.scan(expected).isGlob;
}

function readText(file: string): string {
  try {
    const { size } = statSync(file);
    if (size <= FILE_BYTES_MAX) return readFileSync(file, "utf8");
    throw new KbsyncError(`${file} has ${size} bytes, expected at most ${FILE_BYTES_MAX}`, {
      code: "questions_invalid",
      subject: file,
    });
  } catch (error) {
    if (error instanceof KbsyncError) throw error;
    throw new KbsyncError(`cannot read the questions ${file}: ${messageOf(error)}`, {
      code: "questions_invalid",
      subject: file,
      hint:
        codeOf(error) === "ENOENT"
          ? `\`kbsync eval --init ${file}\` writes a file to start with.`
          : undefined,
      cause: error,
    });
  }
}

function valueOf(read: () => unknown, file: string): unknown {
  try {
    return read();
  } catch (error) {
    throw invalidQuestions(file, [[1, messageOf(error)]], error);
  }
}

/** Problems that a message lists. */
const PROBLEMS_SHOWN = 10;

/** `questions_invalid`: problems by line. */
export function invalidQuestions(
  file: string,
  problems: readonly (readonly [line: number, message: string])[],
  cause?: unknown,
): KbsyncError {
  const shown = problems.slice(0, PROBLEMS_SHOWN).map(([line, message]) => `${file}:${line}: ${message}`);
  const more = problems.length - shown.length;
  return new KbsyncError([...shown, ...(more > 0 ? [`and ${more} more`] : [])].join("\n"), {
    code: "questions_invalid",
    subject: file,
    hint: "Each question has the keys question and expect, and may have answer and source; `kbsync eval --help` has an example.",
    cause,
  });
}
