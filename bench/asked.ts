/**
 * Questions as people ask them (asked-questions.yaml), over the documentation sample: how often the tiers find a file that answers,
 * what a score of 0.5 says when nothing does, and what an answer without a model quotes first. Run:
 *
 *     node bench/asked.ts [--tiers LIST] [--misses]
 *
 * The questions are split by file into two halves: constants may be chosen on the first, the second only measures. Vectors are kept
 * in the temporary folder: making them takes minutes.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { parse } from "yaml";
import { z } from "zod";
import { answerBuiltin } from "../src/kb/chat/builtin.ts";
import { openLocalEmbedder } from "../src/kb/embed/local.ts";
import { contextOf, withContext } from "../src/kb/search/context.ts";
import { search, type SearchOutcome } from "../src/kb/search/search.ts";
import { openSqliteStore } from "../src/kb/store/sqlite/open.ts";
import { Tier } from "../src/wire/primitives.ts";
import { SearchBody, TOP_K_DEFAULT, TOP_K_MAX } from "../src/wire/search.ts";
import { containsAnswer, sampleDocuments } from "./docs-sample.ts";
import { judgedSets } from "./judged-sets.ts";
import { fill } from "./judged-store.ts";
import { printTable } from "./report.ts";
import { withVectorCache } from "./vector-cache.ts";

/** The score from which a result counts as an answer. */
const SURE = 0.5;
/** Tokens of the passages of an answer: about those of five chunks. */
const TOKENS = 1000;
/** Questions about other subjects, of each judged set: nothing answers them here. */
const OTHERS = 40;

const AskedQuestion = z.strictObject({
  question: z.string(),
  expect: z.union([z.array(z.string()), z.string().transform((path) => [path])]).default([]),
  answer: z.string().optional(),
});
const AskedFile = z.record(z.string(), z.array(AskedQuestion));

interface Asked extends z.infer<typeof AskedQuestion> {
  readonly kind: string;
  readonly half: 1 | 2;
}

/** What came of a question in a tier. */
interface Outcome {
  readonly asked: Asked;
  /** Rank of the first result of an expected file, from 1; Infinity: none. */
  readonly rank: number;
  /** The answer stands in the first result. */
  readonly isInFirst: boolean;
  /** It stands in the first passage of `expand: 3`. */
  readonly isInPassage: boolean;
  readonly score: number;
  readonly first: string;
  /** What the agent without a model quotes first. */
  readonly quote: Quote | undefined;
}

interface Quote {
  readonly text: string;
  readonly path: string;
}

const { values: options } = parseArgs({
  options: {
    tiers: { type: "string", default: "fastest,moderate,high_accuracy" },
    misses: { type: "boolean", default: false },
  },
});

/** Reads the questions. The half of a question is that of its first file; those without one go to both in turn. */
function readAsked(paths: readonly string[]): Asked[] {
  const file = readFileSync(join(import.meta.dirname, "asked-questions.yaml"), "utf8");
  return Object.entries(AskedFile.parse(parse(file))).flatMap(([kind, questions]) =>
    questions.map((each, at) => {
      const place = each.expect[0] === undefined ? at : paths.indexOf(each.expect[0]);
      if (place === -1) throw new Error(`${each.question}: there is no file ${each.expect[0]}`);
      return { ...each, kind, half: place % 2 === 0 ? 1 : 2 } as const;
    }),
  );
}

async function main(): Promise<void> {
  const documents = sampleDocuments();
  if (documents === undefined) return;
  const found = await openLocalEmbedder({});
  if (!("embed" in found)) return console.log(`skipped: ${found.reason}`);
  const embedder = withVectorCache(found);
  const store = await openSqliteStore();
  const tiers = options.tiers.split(",").map((tier) => Tier.parse(tier));
  try {
    const { scope } = await fill(store, documents, embedder, tiers.includes("high_accuracy"));
    const pathOf = new Map(documents.map(({ id, metadata }) => [id, metadata.path]));
    const asked = readAsked([...pathOf.values()]);
    const others = judgedSets().flatMap(({ parts }) => spread([...parts.values()].flat(), OTHERS));
    for (const tier of tiers) {
      const quoteOf = async (question: string, outcome: SearchOutcome): Promise<Quote | undefined> => {
        const quoted = await firstQuote(question, outcome);
        return quoted && { text: quoted.span.text, path: pathOf.get(quoted.resource_id) ?? "" };
      };
      const outcomes: Outcome[] = [];
      for (const each of asked) {
        const request = { scope, tier, query: each.question, topK: TOP_K_MAX, scoreMin: undefined };
        const outcome = await search(store.index, embedder, request);
        const body = SearchBody.parse({
          query: each.question,
          expand: "neighbours",
          max_tokens: TOKENS,
          top_k: 5,
        });
        const context = contextOf(body);
        const passages = context && (await withContext(store.index, scope, outcome, context));
        const paths = outcome.results.map(({ payload }) => pathOf.get(payload.resourceId) ?? "");
        const rank = paths.findIndex((path) => each.expect.includes(path)) + 1;
        const contains = (text: string | undefined): boolean =>
          each.answer !== undefined && text !== undefined && containsAnswer(text, each.answer);
        outcomes.push({
          asked: each,
          rank: rank === 0 ? Infinity : rank,
          isInFirst: contains(outcome.results[0]?.payload.content),
          isInPassage: contains(passages?.results[0]?.payload.content),
          score: outcome.results[0]?.score ?? 0,
          first: paths[0] ?? "",
          quote: await quoteOf(each.question, outcome),
        });
      }
      let quoted = 0;
      for (const { text: query } of others) {
        const request = { scope, tier, query, topK: TOP_K_DEFAULT, scoreMin: undefined };
        if ((await quoteOf(query, await search(store.index, embedder, request))) !== undefined) quoted += 1;
      }
      printTier(tier, outcomes);
      printQuotes(outcomes, `${quoted} of ${others.length}`);
    }
  } finally {
    await store.close();
    await embedder.close();
  }
}

function printTier(tier: Tier, outcomes: readonly Outcome[]): void {
  const answerable = outcomes.filter(({ asked }) => asked.expect.length > 0);
  console.log(`\n${tier}: first half / second half`);
  const groups = [...Map.groupBy(answerable, ({ asked }) => asked.kind), ["all", answerable] as const];
  printTable(
    ["", "questions", "hit@1", "hit@3", "answer in the first result", "in the first passage"],
    groups.map(([kind, group]) => [
      kind,
      halves(group, (half) => String(half.length)),
      halves(group, (half) => share(half, ({ rank }) => rank === 1)),
      halves(group, (half) => share(half, ({ rank }) => rank <= 3)),
      halves(group, (half) => share(half, ({ isInFirst }) => isInFirst)),
      halves(group, (half) => share(half, ({ isInPassage }) => isInPassage)),
    ]),
  );
  console.log(
    `the first result scores ${SURE} or more: ` +
      halves(outcomes, (half) => {
        const sure = half.filter(({ score }) => score >= SURE);
        const all = half.filter(({ asked }) => asked.expect.length > 0);
        const right = sure.filter(({ asked }) => asked.expect.length > 0);
        const off = sure.length - right.length;
        const precision = (right.length / Math.max(1, sure.length)).toFixed(2);
        return `precision ${precision}, recall ${(right.length / all.length).toFixed(2)}, ${off} without an answer`;
      }),
  );
  if (!options.misses) return;
  for (const { asked, rank, score, first } of outcomes) {
    if (rank > 3)
      console.log(`${asked.half} ${asked.kind}: ${asked.question} → ${first} ${score.toFixed(2)}`);
  }
}

/** Returns what the agent without a model quotes first. */
async function firstQuote(question: string, { chunks, results }: SearchOutcome) {
  const passages = chunks
    .slice(0, TOP_K_DEFAULT)
    .map((chunk, at) => Object.assign({ number: at + 1, score: results[at]?.score ?? 0 }, chunk));
  const { citations } = await answerBuiltin(
    { pagesMax: 0, readImage: () => Promise.reject(new Error("there is no image")) },
    {
      question,
      images: [],
      passages,
      hasKnowledge: true,
      asJson: false,
      signal: new AbortController().signal,
    },
  );
  return citations[0];
}

function printQuotes(outcomes: readonly Outcome[], others: string): void {
  const figures = (half: readonly Outcome[]): string => {
    const answerable = half.filter(({ asked }) => asked.expect.length > 0);
    const quoted = answerable.filter(({ quote }) => quote !== undefined);
    const ofFile = quoted.filter(({ asked, quote }) => asked.expect.includes(quote?.path ?? ""));
    const answering = ofFile.filter(
      ({ asked, quote }) => asked.answer !== undefined && containsAnswer(quote?.text ?? "", asked.answer),
    );
    const all = half.filter(({ quote }) => quote !== undefined).length;
    return (
      `${quoted.length} of ${answerable.length} (of a file that answers ${ofFile.length}, the answer itself ${answering.length}), ` +
      `${all - quoted.length} of ${half.length - answerable.length} without an answer, precision ${(quoted.length / Math.max(1, all)).toFixed(2)}`
    );
  };
  console.log(`without a model, quotes something: ${halves(outcomes, figures)}; of other subjects ${others}`);
}

/** Takes so many, spread over all. */
function spread<T>(items: readonly T[], count: number): readonly T[] {
  const step = Math.max(1, Math.ceil(items.length / count));
  return items.filter((_, at) => at % step === 0);
}

function halves(group: readonly Outcome[], figure: (half: readonly Outcome[]) => string): string {
  return [1, 2].map((half) => figure(group.filter(({ asked }) => asked.half === half))).join(" / ");
}

function share(group: readonly Outcome[], isHit: (outcome: Outcome) => boolean): string {
  return group.length === 0 ? "–" : (group.filter(isHit).length / group.length).toFixed(2);
}

await main();
