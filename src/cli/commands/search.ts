import { type Command, InvalidArgumentError } from "commander";
import { loadConfig } from "../../config/load.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { countTokens, TOKENIZER } from "../../lib/tokens.ts";
import { askWithReceipt, joinReceipts, receiptLine } from "../../mcp/receipt.ts";
import type { ResourceLookup } from "../../sync/operator/resource-lookup.ts";
import type { SearchQuery } from "../../sync/remote/remote.ts";
import { bestResults, searchOnce, searchScopes } from "../../sync/operator/search.ts";
import {
  ANSWER_TOKENS_DEFAULT,
  ANSWER_TOKENS_MAX,
  ANSWER_TOKENS_MIN,
  Expand,
  NEIGHBOURS_MAX,
} from "../../wire/context.ts";
import type { SearchResult } from "../../wire/search.ts";
import {
  FALLBACK_TEXT,
  joinFallbacks,
  QUERY_CHARS_MAX,
  TOP_K_DEFAULT,
  TOP_K_MAX,
} from "../../wire/search.ts";
import { reachService } from "../compose/compose.ts";
import { openSynced } from "../state/ask.ts";
import { citedPath } from "../output/cited-path.ts";
import type { Context } from "../output/context.ts";
import { openLog } from "../output/log.ts";
import {
  addFreshOptions,
  type CommonOptions,
  configRequest,
  filterOption,
  type FreshOptions,
  waitSecondsOf,
  wholeNumber,
} from "../output/options.ts";
import { ledgerOf } from "../state/receipt.ts";
import { makeStateFolder } from "../state/state-folder.ts";
import { locatePath } from "../state/typed-path.ts";
import { visibleLine } from "../output/visible.ts";

interface SearchOptions extends CommonOptions, FreshOptions {
  readonly topK: number;
  readonly doc?: string;
  readonly filter?: object;
  readonly expand?: Expand;
  readonly maxTokens?: number;
  readonly maxPerDocument?: number;
  /** False for `--no-collapse`. */
  readonly collapse: boolean;
  readonly json?: boolean;
}

/** A result with the file it came from. */
interface Found {
  readonly score: number;
  /** Below the source's folder; null for a resource that is not of this ledger. */
  readonly path: string | null;
  readonly source: string | null;
  readonly docId: string;
  readonly title: string | null;
  /** Above `content`, outermost first. */
  readonly headings: readonly string[];
  readonly chunkId: string;
  readonly version: number;
  readonly content: string;
  /** The hits within `content`, if it is more than one chunk. */
  readonly hits: SearchResult["payload"]["hits"];
  /** Further hits with nearly the same text, and other documents that they are of. */
  readonly duplicates: number;
  readonly duplicateDocuments: NonNullable<SearchResult["payload"]["duplicateDocuments"]>;
  /** What the file's folder is about, if that is known. */
  readonly folderDescription: string | undefined;
  /** Where `content` stands in the text of the document, as the service says. */
  readonly position: Pick<
    SearchResult["payload"],
    "start" | "end" | "lines" | "pages" | "locations" | "sha256" | "fileUrl"
  >;
}

/** `kbsync search QUERY`: asks the knowledge base over all sources, or one document. */
export function addSearch(program: Command, context: Context): void {
  const command = program
    .command("search")
    .description("ask the knowledge base")
    .argument("<query>", "the question or words to search for")
    .option("-k, --top-k <n>", "most results", wholeNumber(1, TOP_K_MAX), TOP_K_DEFAULT)
    .option("-d, --doc <path>", "search this file only")
    .option("--filter <json>", "search documents with this metadata only (see kbsync facets)", filterOption)
    .option(
      "-e, --expand <what>",
      `show more than each hit: "section", "neighbours" (the chunks before and after), or a number of chunks on each side, up to ${NEIGHBOURS_MAX}`,
      expandOption,
    )
    .option(
      "-t, --max-tokens <n>",
      `most tokens of text, as ${TOKENIZER} counts (default: no limit; with --expand ${ANSWER_TOKENS_DEFAULT})`,
      wholeNumber(ANSWER_TOKENS_MIN, ANSWER_TOKENS_MAX),
    )
    .option("--max-per-document <n>", "most hits of one document", wholeNumber(1, TOP_K_MAX))
    .option("--no-collapse", "show all of several hits with nearly the same text, not one with their number");
  addFreshOptions(command)
    .option("--json", "print the results as JSON")
    .action(async (query: string, options: SearchOptions) => search(context, query, options));
}

async function search(context: Context, query: string, options: SearchOptions): Promise<void> {
  if (query.trim() === "" || query.length > QUERY_CHARS_MAX) {
    throw new KbsyncError(
      `the query has ${query.trim().length} characters, expected 1 to ${QUERY_CHARS_MAX}`,
      { code: "usage" },
    );
  }
  const { topK, filter, expand, maxTokens, maxPerDocument, collapse } = options;
  const wanted = { expand, max_tokens: maxTokens, max_per_document: maxPerDocument, collapse };
  const config = loadConfig(configRequest(context, options));
  const state = makeStateFolder(config.stateDir);
  const lookup = openSynced(state.path);
  try {
    const targets = targetsOf(lookup, options.doc, context.cwd);
    const log = openLog({ KBSYNC_LOG: "error", ...context.env }, context.stderrIsTTY);
    // Port 0: the configured one may be another program's by now, and this service lives for one question.
    const service = await reachService(onAnyPort(config), state, context.env, log);
    try {
      const { signal } = context;
      const tokensMax = maxTokens ?? (expand === undefined ? undefined : ANSWER_TOKENS_DEFAULT);
      const { requestTimeoutMs } = config.sync;
      const asked = waitSecondsOf(options);
      const scopes = targets.map((where) => ("docId" in where ? { documentId: where.docId } : where));
      const { answer: answers, receipt } = await askWithReceipt(
        ledgerOf(state.path),
        { scopes, waitSeconds: asked, signal },
        (waitSeconds) => {
          const queries = targets.map((where): SearchQuery => ({
            query,
            topK,
            filter,
            context: wanted,
            waitSeconds,
            where,
          }));
          return searchOnce(
            service,
            queries,
            requestTimeoutMs + Math.ceil((waitSeconds ?? 0) * 1000),
            signal,
          );
        },
        (given) => ({
          receipt: joinReceipts(given.map((each) => each.receipt)),
          cited: bestResults(given, topK, tokensMax).map(({ payload }) => payload.resourceId),
        }),
      );
      const best = bestResults(answers, topK, tokensMax);
      const found = best.map((result) => foundAt(result, lookup));
      const fallback = joinFallbacks(answers);
      context.stdout.write(
        options.json === true
          ? `${JSON.stringify({ query, results: found, budget: budgetOf(best, tokensMax), fallback, receipt }, undefined, 2)}\n`
          : foundText(found),
      );
      if (options.json === true) return;
      if (fallback !== undefined) context.stderr.write(`${FALLBACK_TEXT[fallback]}\n`);
      const line = receiptLine(receipt, asked !== undefined, fallback);
      if (line !== undefined) context.stderr.write(`${line}\n`);
    } finally {
      await service.close();
    }
  } finally {
    lookup.close();
  }
}

/** The scopes to search: all sources, or one file. Throws for a file that has no resource. */
export function targetsOf(
  lookup: ResourceLookup,
  doc: string | undefined,
  cwd: string,
): SearchQuery["where"][] {
  if (doc === undefined) return searchScopes(lookup.sources);
  const folders = lookup.sources.map(({ path }) => path);
  const isKnown = (path: string): boolean => lookup.docOf(path) !== undefined;
  const docId = lookup.docOf(locatePath(doc, { cwd, folders, isKnown }));
  if (docId !== undefined) return [{ docId }];
  throw new KbsyncError(`${doc} is not in the knowledge base`, {
    code: "usage",
    subject: doc,
    hint: "`kbsync status` shows which folders are synced and which files failed.",
  });
}

/** The same, with the embedded service on whatever port is free. */
export function onAnyPort(config: ReturnType<typeof loadConfig>): ReturnType<typeof loadConfig> {
  return "embedded" in config.service ? { ...config, service: { ...config.service, port: 0 } } : config;
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
    duplicates: payload.duplicates ?? 0,
    duplicateDocuments: payload.duplicateDocuments ?? [],
    folderDescription: payload.folderDescription,
    position: { start, end, lines, pages, locations, sha256, fileUrl },
  };
}

/** What the results together have of the tokens that they may have. */
function budgetOf(results: readonly SearchResult[], tokensMax: number | undefined) {
  const text = results.map(({ payload }) => payload.content).join("\n\n");
  return { tokenizer: TOKENIZER, tokens: countTokens(text), maxTokens: tokensMax ?? null };
}

/** Parses what to show around a hit. */
function expandOption(text: string): Expand {
  const expand = Expand.safeParse(text);
  if (expand.success) return expand.data;
  throw new InvalidArgumentError(`expected section, neighbours, or a number from 1 to ${NEIGHBOURS_MAX}`);
}

function foundText(found: readonly Found[]): string {
  if (found.length === 0) return "nothing found\n";
  return found
    .map(({ score, path, docId, content, position, duplicates }) => {
      const text = content.trim().replaceAll(/^(?=.)/gm, "      ");
      const others = duplicates === 0 ? "" : ` (and ${duplicates} with nearly the same text)`;
      return `${score.toFixed(2)}  ${path === null ? `resource ${docId}` : visibleLine(citedPath(path, position))}${others}\n${text}\n`;
    })
    .join("\n");
}
