/**
 * Questions in eleven languages over passages in the same ones (language-questions.yaml), among the English documentation sample: how
 * often the passage that answers comes first and among the first three. Questions with compounds that no passage has are counted apart.
 * Run:
 *
 *     node bench/languages.ts [--tiers LIST] [--misses]
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { parse } from "yaml";
import { z } from "zod";
import { openLocalEmbedder } from "../src/kb/embed/local.ts";
import { search } from "../src/kb/search/search.ts";
import { openSqliteStore } from "../src/kb/store/sqlite/open.ts";
import { Tier } from "../src/wire/primitives.ts";
import { sampleDocuments } from "./docs-sample.ts";
import { fill } from "./judged-store.ts";
import { printTable } from "./report.ts";
import { withVectorCache } from "./vector-cache.ts";

const Languages = z.record(
  z.string(),
  z.strictObject({
    passages: z.record(z.string(), z.string()),
    questions: z.array(z.tuple([z.string(), z.string()])),
    compounds: z.array(z.tuple([z.string(), z.string()])).optional(),
  }),
);

const { values: options } = parseArgs({
  options: {
    tiers: { type: "string", default: "fastest,moderate" },
    misses: { type: "boolean", default: false },
  },
});

const text = readFileSync(join(import.meta.dirname, "language-questions.yaml"), "utf8");
const languages = Languages.parse(parse(text));
const documents = Object.entries(languages).flatMap(([language, { passages }]) =>
  Object.entries(passages).map(([name, content]) => ({ id: `${language}/${name}`, title: "", content })),
);
const tiers = options.tiers.split(",").map((tier) => Tier.parse(tier));
const found = tiers.some((tier) => tier !== "fastest") ? await openLocalEmbedder({}) : undefined;
const embedder = found !== undefined && "embed" in found ? withVectorCache(found) : undefined;
const store = await openSqliteStore();
const { scope } = await fill(store, [...documents, ...(sampleDocuments() ?? [])], embedder, false);
const rows: string[][] = [];
for (const tier of tiers) {
  const groups = Object.entries(languages).flatMap(([language, { questions, compounds = [] }]) => [
    { language, name: language, questions },
    { language, name: `${language}, compounds`, questions: compounds },
  ]);
  for (const { language, name: group, questions } of groups) {
    if (questions.length === 0) continue;
    const ranks: number[] = [];
    for (const [query, name] of questions) {
      const { results } = await search(store.index, embedder, {
        scope,
        tier,
        query,
        topK: 10,
        scoreMin: undefined,
      });
      const rank = results.findIndex(({ payload }) => payload.resourceId === `${language}/${name}`) + 1;
      ranks.push(rank === 0 ? Infinity : rank);
      if (options.misses && rank !== 1) console.log(`${tier}  ${rank === 0 ? "-" : rank}  ${query}`);
    }
    const hit = (depth: number): string =>
      (ranks.filter((rank) => rank <= depth).length / ranks.length).toFixed(2);
    const mrr = ranks.reduce((sum, rank) => sum + 1 / rank, 0) / ranks.length;
    rows.push([tier, group, hit(1), hit(3), mrr.toFixed(3)]);
  }
}
printTable(["tier", "language", "hit@1", "hit@3", "MRR@10"], rows);
await embedder?.close();
await store.close();
