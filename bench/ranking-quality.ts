/** What rankings of a judged set are worth. */
import type { FoundSpan, JudgedQuery, JudgedSet } from "./judged-sets.ts";

/** Results of a query that count for nDCG. */
const DEPTH = 10;

/** Quality of the answer to one query. */
export interface Quality {
  /** nDCG@10. */
  readonly ndcg: number;
  /** Share of the wanted things among all results. */
  readonly recall: number;
}

/** Returns the quality of a ranking. A thing to be found counts where it is first found. */
export function qualityOf(
  { ranked }: Pick<JudgedSet, "ranked">,
  { relevance, wanted }: JudgedQuery,
  spans: readonly FoundSpan[],
): Quality {
  const found = new Set<number>();
  const documents = new Set<string>();
  let rank = 0;
  let gained = 0;
  for (const span of spans) {
    if (ranked === "documents" && documents.has(span.resourceId)) continue;
    documents.add(span.resourceId);
    const fresh = relevance(span).filter((number) => !found.has(number));
    for (const number of fresh) found.add(number);
    if (fresh.length > 0 && rank < DEPTH) gained += 1 / Math.log2(rank + 2);
    rank++;
  }
  let ideal = 0;
  for (let place = 0; place < Math.min(DEPTH, wanted); place++) ideal += 1 / Math.log2(place + 2);
  return { ndcg: gained / ideal, recall: found.size / wanted };
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}
