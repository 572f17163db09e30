/**
 * How often the answer to a question is within the passages of a search, and in how many tokens: with single chunks, and with
 * what is around them, at equal numbers of tokens. Run:
 *
 *     node bench/passages.ts [--tier TIER]
 *
 * Asks the questions of docs-questions.yaml, by default in `moderate`. Vectors are kept in the temporary folder: making them takes minutes.
 */
import { parseArgs } from "node:util";
import { openLocalEmbedder } from "../src/kb/embed/local.ts";
import { contextOf, withContext } from "../src/kb/search/context.ts";
import { search, type SearchOutcome } from "../src/kb/search/search.ts";
import { openSqliteStore } from "../src/kb/store/sqlite/open.ts";
import { countTokens } from "../src/lib/tokens.ts";
import { Tier } from "../src/wire/primitives.ts";
import { SearchBody, TOP_K_MAX } from "../src/wire/search.ts";
import { containsAnswer, readBenchQuestions, sampleDocuments } from "./docs-sample.ts";
import { fill } from "./judged-store.ts";
import { median, printTable, quantile } from "./report.ts";
import { withVectorCache } from "./vector-cache.ts";

const { values: options } = parseArgs({
  options: {
    tier: { type: "string", default: "moderate" },
  },
});
const tier = Tier.parse(options.tier);

/** What is asked of a search; `tokens` gets the number of tokens that the plain answer has. */
const SETTINGS: readonly [name: string, settings: (tokens: number) => object][] = [
  ...[1, 2, 3].flatMap((expand) =>
    [5, 2, 1].map((top_k): (typeof SETTINGS)[number] => [
      `\`expand: ${expand}\`, \`top_k: ${top_k}\``,
      (tokens) => ({ expand, max_tokens: tokens, top_k }),
    ]),
  ),
  ["`expand: 2`, `top_k: 10`, 4,000 tokens", () => ({ expand: 2, max_tokens: 4000, top_k: 10 })],
];

async function measureQuestions(): Promise<void> {
  const documents = sampleDocuments();
  if (documents === undefined) return;
  const found = await openLocalEmbedder({});
  if (!("embed" in found)) return console.log(`skipped: ${found.reason}`);
  const embedder = withVectorCache(found);
  const store = await openSqliteStore();
  try {
    const { scope } = await fill(store, documents, embedder, tier === "high_accuracy");
    const questions = readBenchQuestions("docs-questions.yaml");
    const asked: { readonly question: string; readonly answer: string; readonly outcome: SearchOutcome }[] =
      [];
    for (const { question, answer = "" } of questions) {
      const request = {
        scope,
        tier,
        query: question,
        topK: TOP_K_MAX,
        scoreMin: undefined,
      };
      asked.push({ question, answer, outcome: await search(store.index, embedder, request) });
    }
    const rows = [1, 3, 5, 10].map((depth) =>
      rowOf(
        `the best ${depth}, as they are`,
        asked.map(({ answer, outcome }) => ({ answer, contents: contentsOf(outcome).slice(0, depth) })),
      ),
    );
    for (const [name, settings] of SETTINGS) {
      const answers: Answered[] = [];
      const times: number[] = [];
      for (const { question, answer, outcome } of asked) {
        const tokens = countTokens(contentsOf(outcome).slice(0, 5).join("\n\n"));
        const body = SearchBody.parse({ query: question, ...settings(tokens) });
        const request = contextOf(body);
        if (request === undefined) throw new Error(`${name} asks for nothing`);
        const start = performance.now();
        const best = {
          ...outcome,
          results: outcome.results.slice(0, body.top_k),
          chunks: outcome.chunks.slice(0, body.top_k),
        };
        const expanded = await withContext(store.index, scope, best, request);
        times.push(performance.now() - start);
        answers.push({ answer, contents: contentsOf(expanded) });
      }
      rows.push([
        ...rowOf(name, answers),
        `${median(times).toFixed(1)} / ${quantile(times, 0.99).toFixed(1)}`,
      ]);
    }
    console.log(`${questions.length} questions`);
    printTable(
      ["", "in the first passage", "in the first 3", "in any", "passages", "tokens", "ms p50 / p99"],
      rows,
    );
  } finally {
    await store.close();
    await embedder.close();
  }
}

interface Answered {
  readonly answer: string;
  readonly contents: readonly string[];
}

function contentsOf({ results }: Pick<SearchOutcome, "results">): string[] {
  return results.map(({ payload }) => payload.content);
}

function rowOf(name: string, answers: readonly Answered[]): string[] {
  const share = (depth: number): string => {
    const within = answers.filter(({ answer, contents }) =>
      contents.slice(0, depth).some((content) => containsAnswer(content, answer)),
    );
    return `${((100 * within.length) / answers.length).toFixed(1)} %`;
  };
  const mean = (value: (contents: readonly string[]) => number): number =>
    answers.reduce((sum, { contents }) => sum + value(contents), 0) / answers.length;
  const passages = mean(({ length }) => length).toFixed(1);
  const tokens = mean((contents) => countTokens(contents.join("\n\n"))).toFixed(0);
  return [name, share(1), share(3), share(Infinity), passages, tokens];
}

await measureQuestions();
