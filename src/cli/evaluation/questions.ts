import { readFileSync, statSync } from "node:fs";
import { z } from "zod";
import { KbsyncError, messageOf } from "../../lib/failure.ts";
import { lazyModule } from "../../lib/lazy-module.ts";
import { schemaProblems } from "../../lib/schema-issue.ts";
import { QUERY_CHARS_MAX } from "../../wire/search.ts";

const Path = z.string().trim().min(1).max(4096);
/** A question with the files that answer it: paths below a source's folder, or globs. */
const Question = z.object({
  question: z.string().trim().min(1).max(QUERY_CHARS_MAX),
  expect: z.union([
    z.array(Path, { error: "expected a path or a list of paths" }).min(1).max(100),
    Path.transform((path) => [path]),
  ]),
});
export type Question = z.infer<typeof Question>;

/** Most questions of a file: a search takes up to a second, and they are asked one at a time. */
const QUESTIONS_MAX = 2000;
const FILE_BYTES_MAX = 4 * 1024 * 1024;
/** Problems that a message lists. */
const PROBLEMS_SHOWN = 10;

const parser = lazyModule((load) => load("yaml") as typeof import("yaml"));

/** Reads a YAML list of questions. Other keys are ignored. Throws `questions_invalid` with the key of each of the first problems. */
export function readQuestions(file: string): readonly Question[] {
  const value = read(file);
  const parsed = z.array(Question).min(1).max(QUESTIONS_MAX).safeParse(value);
  if (parsed.success) return parsed.data;
  const problems = schemaProblems(parsed.error, value).map(
    ({ path, message }) => `${file}: ${path === "" ? "" : `${path}: `}${message}`,
  );
  throw new KbsyncError(problems.slice(0, PROBLEMS_SHOWN).join("\n"), {
    code: "questions_invalid",
    subject: file,
    hint: "Each question has the keys question and expect; `kbsync eval --help` has an example.",
  });
}

function read(file: string): unknown {
  try {
    const { size } = statSync(file);
    if (size > FILE_BYTES_MAX) throw new Error(`it has ${size} bytes, expected at most ${FILE_BYTES_MAX}`);
    // A few lines of aliases can expand to gigabytes.
    return parser().parse(readFileSync(file, "utf8"), { maxAliasCount: 0 });
  } catch (error) {
    throw new KbsyncError(`cannot read the questions ${file}: ${messageOf(error)}`, {
      code: "questions_invalid",
      subject: file,
      cause: error,
    });
  }
}
