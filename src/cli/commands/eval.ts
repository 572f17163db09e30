import { readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Command, Option } from "commander";
import picomatch from "picomatch";
import { z } from "zod";
import { loadConfig } from "../../config/load.ts";
import { byRank } from "../../lib/by-rank.ts";
import { KbsyncError, messageOf } from "../../lib/failure.ts";
import { lazyModule } from "../../lib/lazy-module.ts";
import { schemaProblems } from "../../lib/schema-issue.ts";
import type { ResourceLookup } from "../../sync/operate/resource-lookup.ts";
import { openSearchClient, type SearchClient } from "../../sync/operate/search.ts";
import { compileGlob } from "../../sync/scan/rules/globs.ts";
import { Tier } from "../../wire/primitives.ts";
import { joinPending, type Pending, pendingText, QUERY_CHARS_MAX } from "../../wire/search.ts";
import { reachService } from "../compose/reached-service.ts";
import type { Context } from "../output/context.ts";
import { type CommonOptions, configRequest, jsonOption } from "../output/options.ts";
import { counted } from "../../lib/counted.ts";
import { visibleLine } from "../output/visible.ts";
import { scopeOf, type SearchScope } from "../results/search-scope.ts";
import { openSynced, printJson } from "../state/ask.ts";
import { makeStateFolder } from "../state/state-folder.ts";
import { helpText } from "../terminal/help-layout.ts";
import { openLog } from "../terminal/log.ts";
import { documentProse } from "../terminal/prose.ts";

interface EvalOptions extends CommonOptions {
  readonly tier?: Tier;
  readonly json?: boolean;
}

/** Passages that are asked for, and the depth of the reciprocal rank: ten, as in MS MARCO (Nguyen et al. 2016). */
const DEPTH = 10;
/** Passages among which an expected file counts as found. */
const HIT_DEPTH = 3;
const HELP = `
The file is a YAML list:

  - question: may I open the dome in the rain
    expect: handbook/dome.md        # path in the folder, a folder/, a glob, or a list

Ranks count passages. hit@1 and hit@3: share of the questions with an expected file among the first 1 or 3 passages.
MRR: mean of 1/rank, to rank 10.`;

/** `kbsync eval FILE`: measures how well searches find the expected files. */
export function addEval(program: Command, context: Context): void {
  program
    .command("eval")
    .description("measure how well searches find the right files, with questions whose answers you know")
    .argument("<file>", "YAML file with the questions")
    .addOption(new Option("--tier <tier>", "search only the folders of this tier").choices(Tier.options))
    .addOption(jsonOption())
    .addHelpText("after", () => helpText(HELP))
    .action(async (file: string, options: EvalOptions) =>
      evaluate(context, resolve(context.cwd, file), options),
    );
}

async function evaluate(context: Context, file: string, options: EvalOptions): Promise<void> {
  const questions = readQuestions(file);
  const config = loadConfig(configRequest(context, options));
  const state = makeStateFolder(config.stateDir);
  const lookup = openSynced(state.path);
  try {
    if (lookup.docOf(file) !== undefined) {
      throw new KbsyncError(
        `${file} is a document of the knowledge base: searches would find the questions`,
        {
          code: "questions_invalid",
          subject: file,
          hint: "Move it out of the folder, or exclude it from the source.",
        },
      );
    }
    const scope = scopeOf(lookup, options, context.cwd);
    const log = openLog({ KBSYNC_LOG: "error", ...context.env }, context.stderrIsTTY, context.invocation);
    const service = await reachService(config, state, context.env, log);
    const client = openSearchClient(service, config.sync.requestTimeoutMs);
    try {
      const asked: Asked[] = [];
      for (const question of questions)
        asked.push(await askOne(client, lookup, scope, question, context.signal));
      const outcomes = asked.map(({ outcome }) => outcome);
      print(context, file, options, outcomes);
      const line = asked.map(({ pending }) => pendingText(pending, [])).find((each) => each !== undefined);
      if (line !== undefined) context.stderr.write(`${line}\n`);
    } finally {
      await client.close();
      await service.close();
    }
  } finally {
    lookup.close();
  }
}

/** Result of a question. */
interface Outcome extends Question {
  /** Of the first passage from an expected file, from 1; null: none among the first `DEPTH`. */
  readonly rank: number | null;
  /** The files of the first passages, best first; null for a document that this state folder does not know. */
  readonly found: readonly { readonly path: string | null; readonly score: number }[];
  /** The expected paths at which no file is synced. */
  readonly unsynced: readonly string[];
}

/** A result, with the documents that waited at that time. */
interface Asked {
  readonly outcome: Outcome;
  readonly pending: Pending;
}

async function askOne(
  client: SearchClient,
  lookup: ResourceLookup,
  { targets, isOfSource }: SearchScope,
  { question, expect }: Question,
  signal: AbortSignal,
): Promise<Asked> {
  const queries = targets.map((where) => ({ query: question, topK: DEPTH, where }));
  const answers = await client.search(queries, signal);
  const found = answers
    .flatMap(({ results }) => results)
    .filter(({ payload }) => isOfSource?.(payload.resourceId) ?? true)
    .toSorted(byRank)
    .map(({ score, payload }) => ({ path: lookup.fileOf(payload.resourceId)?.path ?? null, score }));
  const isExpected = expectedFiles(expect);
  const at = found.slice(0, DEPTH).findIndex(({ path }) => path !== null && isExpected(path));
  const isSynced = (path: string): boolean =>
    lookup.sources.some((source) => lookup.docOf(join(source.path, path)) !== undefined);
  const rank = at === -1 ? null : at + 1;
  const unsynced = expect.filter((path) => !isGlob(path) && !isSynced(path));
  return {
    outcome: { question, expect, rank, found: found.slice(0, HIT_DEPTH), unsynced },
    pending: joinPending(answers),
  };
}

/** Returns whether a file, by its path below the source, is one of the expected ones. */
function expectedFiles(expect: readonly string[]): (path: string) => boolean {
  const names = new Set(expect.map(comparablePath));
  const globs = [...names].filter(isGlob).map(compileGlob);
  return (path) => {
    const own = comparablePath(path);
    return names.has(own) || globs.some((glob) => glob.matchesFile(own));
  };
}

function isGlob(expected: string): boolean {
  return expected.endsWith("/") || picomatch.scan(expected).isGlob;
}

/** Returns a path as it is compared: some systems store names decomposed, and keyboards type them composed. */
function comparablePath(path: string): string {
  return path.replace(/^\.\//, "").normalize("NFC");
}

/**
 * Prints the figures of outcomes and what was missed. `hit1`, `hit3`: share of the questions with an expected file among the first 1
 * or 3 passages ("success" in trec_eval, https://github.com/usnistgov/trec_eval/blob/main/m_success.c). `mrr`: mean of 1/rank, 0
 * beyond `DEPTH` (Voorhees, The TREC-8 Question Answering Track Report, 1999).
 */
function print(context: Context, file: string, { json }: EvalOptions, outcomes: readonly Outcome[]): void {
  const share = (of: (rank: number) => number): number =>
    outcomes.reduce((sum, { rank }) => sum + (rank === null ? 0 : of(rank)), 0) / outcomes.length;
  const hit1 = share((rank) => Number(rank === 1));
  const hit3 = share((rank) => Number(rank <= HIT_DEPTH));
  const mrr = share((rank) => 1 / rank);
  const misses = outcomes.filter(({ rank }) => rank === null || rank > HIT_DEPTH);
  if (json === true) {
    printJson(context, { file, questions: outcomes.length, hit1, hit3, mrr, misses });
    return;
  }
  const figures = [
    ["questions", String(outcomes.length)],
    ["hit@1", hit1.toFixed(2)],
    ["hit@3", hit3.toFixed(2)],
    ["MRR", mrr.toFixed(2)],
  ].map(([name = "", value = ""]) => `${name.padEnd(9)}  ${value}\n`);
  const missed = misses.length === 0 ? [] : [`\n${counted(misses.length, "question")} missed\n`];
  const text = [...figures, ...missed, ...misses.map(missText)].join("");
  context.stdout.write(documentProse(context.stdout, text));
}

/** The question, then what was expected and what was found. */
function missText({ question, expect, rank, found, unsynced }: Outcome): string {
  const where = rank === null ? "" : ` (rank ${rank})`;
  const came = found.map(({ path, score }) => `${path ?? "another document"} (${score.toFixed(2)})`);
  return [
    `  ${visibleLine(question)}`,
    `      expected ${visibleLine(expect.join(", "))}${where}`,
    ...unsynced.map((path) => `      no synced file is at ${visibleLine(path)}`),
    `      found    ${visibleLine(came.join(", ") || "nothing")}`,
  ]
    .map((line) => `${line}\n`)
    .join("");
}

const Path = z.string().trim().min(1).max(4096);
/** A question with the files that answer it: paths below a source's folder, or globs. */
const Question = z.object({
  question: z.string().trim().min(1).max(QUERY_CHARS_MAX),
  expect: z.union([
    z.array(Path, { error: "expected a path or a list of paths" }).min(1).max(100),
    Path.transform((path) => [path]),
  ]),
});
type Question = z.infer<typeof Question>;

/** Most questions of a file: a search takes up to a second, and they are asked one at a time. */
const QUESTIONS_MAX = 2000;
const FILE_BYTES_MAX = 4 * 1024 * 1024;
/** Problems that a message lists. */
const PROBLEMS_SHOWN = 10;

const parser = lazyModule((load) => load("yaml") as typeof import("yaml"));

/** Reads a YAML list of questions. Other keys are ignored. Throws `questions_invalid` with the key of each of the first problems. */
function readQuestions(file: string): readonly Question[] {
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
