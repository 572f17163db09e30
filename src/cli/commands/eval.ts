import { resolve } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type Config, loadConfig } from "../../config/load.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { figuresOf } from "../../lib/retrieval-figures.ts";
import type { ResourceLookup } from "../../sync/operator/resource-lookup.ts";
import { openSearchClient, type SearchClient } from "../../sync/operator/search.ts";
import { Tier } from "../../wire/primitives.ts";
import { reachService } from "../compose/reached-service.ts";
import type { ReachedService } from "../compose/embedded-service.ts";
import { type AskedTier, askQuestions, questionsByTier } from "../evaluation/ask.ts";
import type { Outcome } from "../evaluation/outcome.ts";
import {
  compareRuns,
  isSameRun,
  type LastRun,
  readLastRuns,
  runOf,
  storeRuns,
} from "../evaluation/last-runs.ts";
import { invalidQuestions, type Question, readQuestions } from "../evaluation/questions.ts";
import {
  type Metric,
  METRIC_NAMES,
  reportText,
  shortfalls,
  shortfallText,
  type TierReport,
} from "../evaluation/report.ts";
import { PLAIN, type Setting, settingOption } from "../evaluation/setting.ts";
import { awaitVectors } from "../evaluation/vectors.ts";
import { openTrial } from "../evaluation/trial.ts";
import type { Context } from "../output/context.ts";
import { EXIT } from "../output/exit-code.ts";
import { helpText } from "../terminal/help-layout.ts";
import { openLog } from "../terminal/log.ts";
import { documentProse } from "../terminal/prose.ts";
import { type CommonOptions, configRequest } from "../output/options.ts";
import { counted } from "../output/progress.ts";
import { openSynced, printJson } from "../state/ask.ts";
import { makeStateFolder, type StateFolder } from "../state/state-folder.ts";
import { writeStarter } from "./eval-starter.ts";

interface EvalOptions extends CommonOptions {
  readonly init?: boolean;
  readonly tier?: readonly Tier[];
  readonly setting?: readonly Setting[];
  readonly minHit1?: number;
  readonly minHit3?: number;
  readonly minMrr?: number;
  readonly minAnswer?: number;
  /** False for `--no-worse`. */
  readonly worse: boolean;
  readonly json?: boolean;
}

/** Dependencies of an evaluation: the ledger and the service that it was synced to. */
interface Evaluated {
  readonly config: Config;
  readonly state: StateFolder;
  readonly lookup: ResourceLookup;
  readonly service: ReachedService;
  readonly log: ReturnType<typeof openLog>;
}

const DEFAULT_FILE = "questions.yaml";
const HELP = `
The file is a YAML list:

  - question: may I open the dome in the rain
    expect: handbook/dome.md        # path in the folder, a glob, or a list
    answer: never while it rains    # optional: text that must be found
    source: ../docs                 # optional: search this folder only

Ranks count passages. hit@1 and hit@3: share of the questions with an expected file among the first 1 or 3 passages.
MRR: mean of 1/rank, to rank 10. answer: share of the answers found in one of the first 3 passages.
Exits with 1 if a figure is below its threshold, or with --no-worse if a question got worse.`;

/** `kbsync eval`: measures how well searches find the expected files. */
export function addEval(program: Command, context: Context): void {
  const command = program
    .command("eval")
    .description("measure how well searches find the right files, with questions whose answers you know")
    .argument("[file]", `YAML file with the questions (default: ${DEFAULT_FILE})`)
    .addOption(
      new Option("--init", "write a first file, made from the headings of the synced documents").conflicts([
        "tier",
        "setting",
        "minHit1",
        "minHit3",
        "minMrr",
        "minAnswer",
        "worse",
        "json",
      ]),
    )
    .addOption(
      new Option(
        "--tier <tier>",
        "search in this tier; may be repeated; a tier that no folder uses is tried in a temporary copy (default: the tiers in use)",
      )
        .choices(Tier.options)
        .argParser((text, before: readonly Tier[] | undefined) => [...(before ?? []), tierOf(text)]),
    )
    .option(
      "--setting <json>",
      "search with these fields (expand, max_tokens, max_per_document, collapse, filter); may be repeated to compare settings, {} for none",
      settingOption,
    );
  for (const [metric, name] of Object.entries(METRIC_NAMES))
    command.option(`--min-${metric} <share>`, `exit with 1 if ${name} is below this share (0 to 1)`, share);
  command
    .option("--no-worse", "exit with 1 if a question got worse since the last run, and do not store this run")
    .option("--json", "print the results of all questions as JSON")
    .addHelpText("after", () => helpText(HELP))
    .action(async (file: string | undefined, options: EvalOptions) => {
      const path = resolve(context.cwd, file ?? DEFAULT_FILE);
      if (options.init === true)
        await withService(context, options, async (evaluated) => writeStarter(context, path, evaluated));
      else await evaluate(context, path, options);
    });
}

function tierOf(text: string): Tier {
  const tier = Tier.safeParse(text);
  if (tier.success) return tier.data;
  throw new InvalidArgumentError(`expected one of ${Tier.options.join(", ")}`);
}

function share(text: string): number {
  const value = Number(text);
  if (/^[\d.]+$/.test(text) && value <= 1) return value;
  throw new InvalidArgumentError("expected a number from 0 to 1");
}

/** Opens ledger and service as `kbsync search` does. */
async function withService(
  context: Context,
  options: CommonOptions,
  work: (evaluated: Evaluated) => Promise<void>,
): Promise<void> {
  const config = loadConfig(configRequest(context, options));
  const state = makeStateFolder(config.stateDir);
  const lookup = openSynced(state.path);
  try {
    const log = openLog({ KBSYNC_LOG: "error", ...context.env }, context.stderrIsTTY, context.invocation);
    const service = await reachService(config, state, context.env, log);
    try {
      await work({ config, state, lookup, service, log });
    } finally {
      await service.close();
    }
  } finally {
    lookup.close();
  }
}

async function evaluate(context: Context, file: string, options: EvalOptions): Promise<void> {
  const questions = readQuestions(file);
  const thresholds = thresholdsOf(options, questions, file);
  await withService(context, options, async (evaluated) => {
    const { state, lookup } = evaluated;
    checkSources(file, questions, lookup);
    const last = readLastRuns(state.path);
    const at = new Date(context.nowMs()).toISOString();
    const asked = { file, questions, tiers: options.tier, settings: options.setting ?? [PLAIN] };
    const reports = await reportTiers(context, asked, evaluated, last);
    const below = shortfalls(reports, thresholds);
    const gotWorse = reports.some((report) => (report.last?.worse.length ?? 0) > 0);
    const isRefused = !options.worse && gotWorse;
    // A refused result must not become the baseline of the next check.
    if (!isRefused) {
      const runs = reports.map(({ outcomes, ...report }) => runOf(askedOf(file, report), at, outcomes));
      storeRuns(state.path, last, runs);
    }
    if (options.json === true) printJson(context, { file, at, tiers: reports, shortfalls: below, gotWorse });
    else {
      const text = reportText(file, reports) + shortfallText(below) + (isRefused ? REFUSED : "");
      context.stdout.write(documentProse(context.stdout, text));
    }
    context.exitCode = below.length > 0 || isRefused ? EXIT.filesFailed : EXIT.done;
  });
}

const REFUSED =
  "questions got worse: the next run compares with the same one again; without --no-worse, it compares with this one\n";

/** What a run asks. */
interface Asked {
  readonly file: string;
  readonly questions: readonly Question[];
  /** Undefined: the tiers in use. */
  readonly tiers: readonly Tier[] | undefined;
  readonly settings: readonly Setting[];
}

function askedOf(questions: string, { tier, setting }: Pick<TierReport, "tier" | "setting">) {
  return { questions, tier, ...(setting !== undefined && { setting }) };
}

async function reportTiers(
  context: Context,
  { file, questions, tiers: chosen, settings }: Asked,
  evaluated: Evaluated,
  last: readonly LastRun[],
): Promise<readonly TierReport[]> {
  const { lookup } = evaluated;
  const asked = questionsByTier(questions, lookup);
  const reports: TierReport[] = [];
  for (const tier of new Set(chosen ?? Tier.options.filter((each) => asked.has(each)))) {
    const isTrial = lookup.sources.every((source) => source.tier !== tier);
    const runs = isTrial
      ? await askInTrial(context, evaluated, { questions, settings }, tier)
      : await askHere(context, evaluated, { tier, questions: asked.get(tier) ?? [], settings });
    for (const { name, outcomes } of runs) {
      if (outcomes.length === 0) {
        throw new KbsyncError(`no question concerns a folder that is synced to ${tier}`, { code: "usage" });
      }
      const report = { tier, ...(name !== "" && { setting: name }) };
      const before = last.find((run) => isSameRun(run, askedOf(file, report)));
      const comparison = before === undefined ? null : compareRuns(before, outcomes);
      reports.push({ ...report, isTrial, figures: figuresOf(outcomes), outcomes, last: comparison });
    }
  }
  return reports;
}

async function askHere(
  context: Context,
  { config, lookup, service }: Pick<Evaluated, "config" | "lookup" | "service">,
  { tier, questions, settings }: Pick<AskedTier, "tier" | "questions"> & Pick<Asked, "settings">,
): Promise<readonly Run[]> {
  await awaitVectors(
    service.apiUrl,
    tier,
    (words) => context.stderr.write(`kbsync: ${words}\n`),
    context.signal,
  );
  const open = (): SearchClient => openSearchClient(service, config.sync.requestTimeoutMs);
  const runs: Run[] = [];
  for (const setting of settings) {
    const asked = { tier, lookup, questions, open, setting };
    runs.push({ name: setting.name, outcomes: await askQuestions(asked, context.signal) });
  }
  return runs;
}

/** The outcomes in a setting. */
interface Run extends Pick<Setting, "name"> {
  readonly outcomes: readonly Outcome[];
}

/** Asks in a tier that no folder is synced to. */
async function askInTrial(
  context: Context,
  { config, lookup, log }: Evaluated,
  { questions, settings }: Pick<Asked, "questions" | "settings">,
  tier: Tier,
): Promise<readonly Run[]> {
  if (!("embedded" in config.service)) {
    throw new KbsyncError(`no folder is synced to ${tier}`, {
      code: "usage",
      subject: tier,
      hint: "With a hosted service, sync a copy of the folder as a source with this collection, then compare the tiers.",
    });
  }
  const folders = lookup.sources.map(({ path }) => path);
  context.stderr.write(
    `kbsync: syncing ${folders.join(", ")} to ${tier} in a temporary folder, for this evaluation only\n`,
  );
  const sources = lookup.sources.flatMap(
    ({ path }) =>
      loadConfig({
        file: config.file,
        stateDir: config.stateDir,
        folders: [{ path }],
        cwd: context.cwd,
        env: context.env,
      }).sources,
  );
  const trial = await openTrial({ ...config, sources }, config.service, tier, log, context.signal);
  try {
    if (trial.missing > 0)
      context.stderr.write(`kbsync: ${counted(trial.missing, "file")} could not be synced to ${tier}\n`);
    const { lookup: copy, service } = trial;
    const asked = questionsByTier(questions, copy).get(tier) ?? [];
    return await askHere(context, { config, lookup: copy, service }, { tier, questions: asked, settings });
  } finally {
    await trial.close();
  }
}

function thresholdsOf(
  { minHit1, minHit3, minMrr, minAnswer }: EvalOptions,
  questions: readonly Question[],
  file: string,
): Partial<Record<Metric, number>> {
  if (minAnswer !== undefined && questions.every(({ answer }) => answer === undefined)) {
    throw new KbsyncError(`--min-answer: no question in ${file} has an answer`, { code: "usage" });
  }
  return {
    ...(minHit1 !== undefined && { hit1: minHit1 }),
    ...(minHit3 !== undefined && { hit3: minHit3 }),
    ...(minMrr !== undefined && { mrr: minMrr }),
    ...(minAnswer !== undefined && { answer: minAnswer }),
  };
}

/** Throws `questions_invalid` for questions that name no synced folder, and for a file that is a document itself. */
function checkSources(file: string, questions: readonly Question[], lookup: ResourceLookup): void {
  const folders = lookup.sources.map(({ path }) => path);
  const unknown = questions.filter(({ source }) => source !== undefined && !folders.includes(source));
  if (unknown.length > 0) {
    throw invalidQuestions(
      file,
      unknown.map(({ source, line }) => [
        line,
        `source: expected a synced folder (${folders.join(", ")}), got ${source ?? ""}`,
      ]),
    );
  }
  if (lookup.docOf(file) !== undefined) {
    throw new KbsyncError(`${file} is a document of the knowledge base: searches would find the questions`, {
      code: "questions_invalid",
      subject: file,
      hint: "Move it out of the folder, or exclude it from the source.",
    });
  }
}
