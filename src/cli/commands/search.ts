import { join, resolve } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { Config } from "../../config/load.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { TOKENIZER } from "../../lib/tokens.ts";
import type { ResourceLookup } from "../../sync/operate/resource-lookup.ts";
import type { SearchQuery } from "../../sync/send/remote/remote.ts";
import { bestResults, searchOnce } from "../../sync/operate/search.ts";
import {
  ANSWER_TOKENS_DEFAULT,
  ANSWER_TOKENS_MAX,
  ANSWER_TOKENS_MIN,
  type Expand,
  NEIGHBOURS_MAX,
} from "../../wire/context.ts";
import { Tier } from "../../wire/primitives.ts";
import {
  type SearchAnswer,
  type SearchFallback,
  type SearchResult,
  FALLBACK_TEXT,
  joinFallbacks,
  joinPending,
  type Pending,
  QUERY_CHARS_MAX,
  TOP_K_DEFAULT,
  TOP_K_MAX,
} from "../../wire/search.ts";
import { reachService } from "../compose/reached-service.ts";
import type { ReachedService } from "../compose/embedded-service.ts";
import { openOperator, openSynced, printJson } from "../state/ask.ts";
import type { Context } from "../output/context.ts";
import { openLog } from "../terminal/log.ts";
import {
  type CommonOptions,
  expandOption,
  filterOption,
  freshOption,
  type FreshOptions,
  jsonOption,
  waitSecondsOf,
  wholeNumber,
} from "../output/options.ts";
import type { Found } from "../results/result-text.ts";
import { type ScopeOptions, scopeOf, type SearchScope } from "../results/search-scope.ts";
import { awaitFresh } from "../state/fresh.ts";
import { ALL_SENT, countUnsent, type Unsent, unsentLines } from "../state/unsent.ts";
import { makeStateFolder } from "../state/state-folder.ts";
import { styleOf } from "../terminal/style.ts";
import { visibleLine } from "../output/visible.ts";

interface SearchOptions extends CommonOptions, FreshOptions, ScopeOptions {
  readonly topK: number;
  readonly filter?: object;
  readonly score?: number;
  readonly expand?: Expand;
  readonly maxTokens?: number;
  readonly files?: boolean;
  readonly json?: boolean;
}

/** `kbsync search WORDS`: searches all sources, or one document. */
export function addSearch(program: Command, context: Context): void {
  program
    .command("search")
    .description("search the knowledge base")
    .argument("<query...>", "question or words; needs no quotes")
    .option("-k, --top-k <n>", "maximum number of results", wholeNumber(1, TOP_K_MAX), TOP_K_DEFAULT)
    .option("-d, --doc <path>", "search only this file")
    .option("--source <source>", "search only this synced folder")
    .addOption(new Option("--tier <tier>", "search only the folders of this tier").choices(Tier.options))
    .option("--filter <json>", "search only documents with this metadata", filterOption)
    .option("--score <n>", "minimum score of a result, from 0 to 1", scoreOption)
    .option(
      "-e, --expand <what>",
      `show the text around each result: its "neighbours" (one chunk on each side), or a number of chunks on each side, up to ${NEIGHBOURS_MAX}`,
      expandOption,
    )
    .option(
      "-t, --max-tokens <n>",
      `maximum tokens of text, as ${TOKENIZER} counts them (default: no limit; with --expand ${ANSWER_TOKENS_DEFAULT})`,
      wholeNumber(ANSWER_TOKENS_MIN, ANSWER_TOKENS_MAX),
    )
    .addOption(freshOption())
    .addOption(new Option("--files", "print only the paths of the files").conflicts("json"))
    .addOption(jsonOption())
    .action(async (words: string[], options: SearchOptions) => search(context, words.join(" "), options));
}

async function search(context: Context, query: string, options: SearchOptions): Promise<void> {
  if (query.trim() === "" || query.length > QUERY_CHARS_MAX) {
    throw new KbsyncError(
      `the query has ${query.trim().length} characters, expected 1 to ${QUERY_CHARS_MAX}`,
      { code: "usage" },
    );
  }
  const operator = openOperator(context, options);
  const { config } = operator;
  const state = makeStateFolder(config.stateDir);
  const lookup = openSynced(state.path);
  try {
    const scope = scopeOf(lookup, options, context.cwd);
    const log = openLog({ KBSYNC_LOG: "error", ...context.env }, context.stderrIsTTY, context.invocation);
    const service = await reachService(config, state, context.env, log);
    try {
      const late = await awaitFresh(state.path, {
        path: waitedPath(scope, options, lookup, context.cwd),
        seconds: waitSecondsOf(options),
        signal: context.signal,
      });
      const [answer, unsent] = await Promise.all([
        ask(service, config, scope, query, options, context.signal),
        options.json === true ? ALL_SENT : countUnsent(operator),
      ]);
      await print(context, query, options, answer, lookup, unsent);
      if (late !== undefined) context.stderr.write(`${late}\n`);
    } finally {
      await service.close();
    }
  } finally {
    lookup.close();
  }
}

/** The file or folder that the search is limited to; undefined: none. */
function waitedPath(
  { targets: [target] }: SearchScope,
  { source }: SearchOptions,
  lookup: ResourceLookup,
  cwd: string,
): string | undefined {
  const file = target !== undefined && "docId" in target ? lookup.fileOf(target.docId) : undefined;
  if (file !== undefined) return join(file.source, file.path);
  return source === undefined ? undefined : resolve(cwd, source);
}

/** The results that fit, best first, with the facts about them. */
interface Answer {
  readonly results: readonly SearchResult[];
  /** Score of the best result below `--score`. */
  readonly scoreBelow: number | undefined;
  readonly fallback: SearchFallback | undefined;
  readonly pending: Pending;
}

async function ask(
  service: ReachedService,
  { sync: { requestTimeoutMs } }: Config,
  { targets, isOfSource }: SearchScope,
  query: string,
  options: SearchOptions,
  signal: AbortSignal,
): Promise<Answer> {
  const { topK, filter, expand, maxTokens, score = 0 } = options;
  const context = {
    expand,
    max_tokens: maxTokens,
  };
  const tokensMax = maxTokens ?? (expand === undefined ? undefined : ANSWER_TOKENS_DEFAULT);
  const best = (answers: readonly SearchAnswer[], scoreMin: number): SearchResult[] => {
    const fits = (result: SearchResult): boolean =>
      result.score >= scoreMin && (isOfSource?.(result.payload.resourceId) ?? true);
    const fitting = answers.map((each) => ({ ...each, results: each.results.filter(fits) }));
    return bestResults(fitting, topK, tokensMax);
  };
  const queries = targets.map((where): SearchQuery => ({
    query,
    // The service does not know which documents of a scope belong to a source.
    topK: isOfSource === undefined ? topK : TOP_K_MAX,
    filter,
    context,
    where,
  }));
  const answers = await searchOnce(service, queries, requestTimeoutMs, signal);
  return {
    results: best(answers, score),
    scoreBelow: best(answers, 0).find((result) => result.score < score)?.score,
    fallback: joinFallbacks(answers),
    pending: joinPending(answers),
  };
}

async function print(
  context: Context,
  query: string,
  options: SearchOptions,
  answer: Answer,
  lookup: ResourceLookup,
  unsent: Unsent,
): Promise<void> {
  const { results, fallback, pending } = answer;
  const found = results.map((result) => foundAt(result, lookup));
  if (options.json === true) {
    printJson(context, { query, results: found, fallback, pending });
    return;
  }
  if (options.files === true) {
    const paths = new Set(
      found.flatMap(({ source, path }) => (path === null ? [] : [join(source ?? "", path)])),
    );
    context.stdout.write([...paths].map((path) => `${visibleLine(path)}\n`).join(""));
  } else if (found.length > 0) {
    // The text around the hit was requested, so all of it is shown.
    const isFull = options.expand !== undefined;
    // No other command needs the code that reads words.
    const [{ queryMatches }, { resultsText }] = await Promise.all([
      import("../results/matches.ts"),
      import("../results/result-text.ts"),
    ]);
    if (isWeak(found, options)) context.stdout.write("No good match. The closest results:\n\n");
    context.stdout.draw(resultsText(found, queryMatches(query), styleOf(context), isFull));
  }
  if (found.length === 0) {
    (options.files === true ? context.stderr : context.stdout).write(`${nothingWords(options, answer)}\n`);
  }
  if (fallback !== undefined) context.stderr.write(`${FALLBACK_TEXT[fallback]}\n`);
  // A search by words alone has said already that it found nothing by meaning.
  const lines = unsentLines(unsent, fallback === "words" ? { ...pending, embed: 0 } : pending);
  context.stderr.write(lines.map((line) => `${line}\n`).join(""));
}

/** Below this a result shares a word that most documents have, or little of its meaning (docs/adr/0009-scores-from-evidence.md). */
const WEAK_SCORE = 0.1;

/** Reports whether even the best result fits poorly. Not if a score was given, which already decides that. */
function isWeak(found: readonly Found[], { score }: SearchOptions): boolean {
  return score === undefined && found.every((each) => each.score < WEAK_SCORE);
}

/** Why there is no result. */
function nothingWords({ score, filter }: SearchOptions, { scoreBelow }: Answer): string {
  if (score !== undefined && scoreBelow !== undefined)
    return `nothing found with a score of ${score} or more; the best has ${scoreBelow.toFixed(2)}`;
  return filter === undefined ? "nothing found" : "nothing found with this filter";
}

function foundAt({ id, score, version, payload }: SearchResult, lookup: ResourceLookup): Found {
  const file = lookup.fileOf(payload.resourceId);
  const { start, end, lines, pages, locations, sha256, fileUrl } = payload;
  return {
    score,
    path: file?.path ?? null,
    source: file?.source ?? null,
    docId: payload.resourceId,
    title: payload.title ?? null,
    headings: payload.headings ?? [],
    chunkId: id,
    version,
    content: payload.content,
    hits: payload.hits,
    folderDescription: payload.folderDescription,
    position: { start, end, lines, pages, locations, sha256, fileUrl },
  };
}

function scoreOption(text: string): number {
  const value = Number(text);
  if (/^[\d.]+$/.test(text) && value >= 0 && value <= 1) return value;
  throw new InvalidArgumentError("expected a number from 0 to 1");
}
