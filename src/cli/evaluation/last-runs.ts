import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { codeOf, KbsyncError } from "../../lib/failure.ts";
import { compareResults, type Comparison, questionId } from "../../lib/compare-results.ts";
import { Tier } from "../../wire/primitives.ts";
import { writeStateFile } from "../state/state-folder.ts";
import type { Outcome } from "./outcome.ts";
import type { Question } from "./questions.ts";

const Result = z.object({ id: z.string(), rank: z.int().nullable(), answered: z.boolean().nullable() });
const LastRun = z.object({
  /** Absolute path of the questions. */
  questions: z.string(),
  tier: Tier,
  /** Name of the setting; absent for a search without further fields. */
  setting: z.string().optional(),
  at: z.iso.datetime(),
  results: z.array(Result),
});
const LastRuns = z.object({ runs: z.array(LastRun) });

/** The last run of a file of questions in a tier. */
export type LastRun = z.infer<typeof LastRun>;

/** A run compared with the last one, over the questions that are in both unchanged. */
export interface RunComparison extends Comparison<Question> {
  /** Time of the last run. */
  readonly at: string;
}

/** Maximum number of stored runs; the oldest are removed. With 2,000 questions each, they take 3 MB. */
const RUNS_MAX = 20;

/** Reads the stored runs; none if there is no file. Throws `state_unusable` for a file that kbsync did not write. */
export function readLastRuns(stateDir: string): readonly LastRun[] {
  const file = runsFile(stateDir);
  try {
    return LastRuns.parse(JSON.parse(readFileSync(file, "utf8"))).runs;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw new KbsyncError(`cannot read the last evaluations in ${file}`, {
      code: "state_unusable",
      subject: file,
      hint: "Delete the file: the next run then has nothing to compare with.",
      cause: error,
    });
  }
}

/** Stores runs. Each replaces the one of the same questions and tier. Throws `state_unusable`. */
export function storeRuns(stateDir: string, before: readonly LastRun[], runs: readonly LastRun[]): void {
  const isReplaced = (old: LastRun): boolean => runs.some((run) => isSameRun(old, run));
  const all = [...before.filter((old) => !isReplaced(old)), ...runs].slice(-RUNS_MAX);
  writeStateFile(runsFile(stateDir), `${JSON.stringify({ runs: all })}\n`);
}

/** Whether two runs asked the same questions in the same tier and setting. */
export function isSameRun(one: Asked, other: Asked): boolean {
  return (
    one.questions === other.questions &&
    one.tier === other.tier &&
    (one.setting ?? "") === (other.setting ?? "")
  );
}
type Asked = Pick<LastRun, "questions" | "tier" | "setting">;

/** Builds the record of a run. */
export function runOf(asked: Asked, at: string, outcomes: readonly Outcome[]): LastRun {
  const results = outcomes.map(({ question, rank, answered }) => ({
    id: questionId(question),
    rank,
    answered,
  }));
  return { ...asked, at, results };
}

/** Compares a run with the last one. Pure. */
export function compareRuns(last: LastRun, outcomes: readonly Outcome[]): RunComparison {
  const results = outcomes.map((outcome) => ({ ...outcome, id: questionId(outcome.question) }));
  return { at: last.at, ...compareResults(last.results, results) };
}

function runsFile(stateDir: string): string {
  return join(stateDir, "eval.json");
}
