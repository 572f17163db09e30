import { join } from "node:path";
import { codeOf, messageOf } from "../../lib/failure.ts";
import { DEPTH, scoreResults } from "../../lib/retrieval-figures.ts";
import type { ResourceLookup, SourceScope } from "../../sync/operator/resource-lookup.ts";
import { type SearchClient, searchScopes } from "../../sync/operator/search.ts";
import type { Tier } from "../../wire/primitives.ts";
import type { SearchResult } from "../../wire/search.ts";
import type { Outcome } from "./outcome.ts";
import { expectedFiles, isGlob, type Question } from "./questions.ts";
import { PLAIN, type Setting } from "./setting.ts";

/** The sources of one tier at one service. */
export interface AskedTier {
  readonly tier: Tier;
  readonly lookup: ResourceLookup;
  /** Opens a client of the service. */
  readonly open: () => SearchClient;
  /** Each question for this tier, with whether a synced file of it is expected. */
  readonly questions: readonly { readonly question: Question; readonly isSynced: boolean }[];
  /** Default: a search without further fields. */
  readonly setting?: Setting;
}

/** Unanswered questions in a row after which the service counts as unreachable. */
const UNANSWERED_MAX = 3;

/**
 * Assigns the questions to the tiers. A question is asked where an expected file is synced. If there is no such tier, it is
 * asked in every tier and counts as a miss. `source` narrows both.
 */
export function questionsByTier(
  questions: readonly Question[],
  lookup: ResourceLookup,
): ReadonlyMap<Tier, AskedTier["questions"]> {
  const byTier = new Map<Tier, { question: Question; isSynced: boolean }[]>();
  for (const question of questions) {
    const sources = lookup.sources.filter((source) => isMeant(source, question));
    const tiers = new Set(sources.map(({ tier }) => tier));
    const synced = tiersWithExpected(question, sources, lookup);
    for (const tier of tiers) {
      const isSynced = synced.has(tier);
      if (!isSynced && synced.size > 0) continue;
      byTier.set(tier, [...(byTier.get(tier) ?? []), { question, isSynced }]);
    }
  }
  return byTier;
}

function isMeant({ path }: SourceScope, { source }: Question): boolean {
  return source === undefined || source === path;
}

function tiersWithExpected(
  question: Question,
  sources: readonly SourceScope[],
  lookup: ResourceLookup,
): ReadonlySet<Tier> {
  const hasPath = ({ path }: SourceScope): boolean =>
    question.expect.some((expected) => lookup.docOf(join(path, expected)) !== undefined);
  const tiers = new Set(sources.filter(hasPath).map(({ tier }) => tier));
  // Listing all files is slow, so plain paths come first.
  if (tiers.size > 0 && !question.expect.some(isGlob)) return tiers;
  const tierOf = new Map(sources.map(({ path, tier }) => [path, tier]));
  const tiersMax = new Set(tierOf.values()).size;
  const matches = expectedFiles(question);
  for (const { source, path } of lookup.files()) {
    if (tiers.size === tiersMax) break;
    const tier = tierOf.get(source);
    if (tier !== undefined && !tiers.has(tier) && matches(path)) tiers.add(tier);
  }
  return tiers;
}

/**
 * Asks a tier its questions, one at a time, so that the times are those of a single user. Questions that the service refuses or
 * does not answer count as misses. Throws `service_unreachable` after three unanswered ones in a row, `key_refused`, and the
 * signal's reason.
 */
export async function askQuestions(
  { tier, lookup, open, questions, setting = PLAIN }: AskedTier,
  signal: AbortSignal,
): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  let unanswered = 0;
  let client = open();
  try {
    for (const asked of questions) {
      const { question } = asked;
      try {
        outcomes.push(await askOne(client, lookup, { tier, setting }, asked, signal));
        unanswered = 0;
      } catch (error) {
        const code = codeOf(error);
        if (code === "service_unreachable" && unanswered < UNANSWERED_MAX - 1) unanswered += 1;
        else if (code === "service_refused") unanswered = 0;
        else throw error;
        const answered = question.answer === undefined ? null : false;
        outcomes.push({ question, rank: null, answered, ms: null, came: [], problem: messageOf(error) });
        await client.close();
        // The gate of the old one would refuse the next question at once.
        client = open();
      }
    }
  } finally {
    await client.close();
  }
  return outcomes;
}

async function askOne(
  client: SearchClient,
  lookup: ResourceLookup,
  { tier, setting: { filter, context } }: Required<Pick<AskedTier, "tier" | "setting">>,
  { question, isSynced }: AskedTier["questions"][number],
  signal: AbortSignal,
): Promise<Outcome> {
  const sources = lookup.sources.filter((one) => one.tier === tier && isMeant(one, question));
  const queries = searchScopes(sources).map((where) => ({
    query: question.question,
    topK: DEPTH,
    where,
    filter,
    context,
  }));
  const startMs = performance.now();
  const answers = await client.search(queries, signal);
  const ms = performance.now() - startMs;
  const matches = expectedFiles(question);
  const fileOf = ({ payload }: SearchResult) => lookup.fileOf(payload.resourceId);
  const isExpected = (result: SearchResult): boolean => {
    const file = fileOf(result);
    return file !== undefined && (question.source ?? file.source) === file.source && matches(file.path);
  };
  const results = answers.flatMap((answer) => answer.results);
  const { first, ...scored } = scoreResults(results, isExpected, question.answer);
  return {
    question,
    ...scored,
    ms,
    came: first.map((result) => ({ path: fileOf(result)?.path ?? null, score: result.score })),
    problem: isSynced ? null : "no synced file matches what is expected",
  };
}
