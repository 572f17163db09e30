import { hash } from "node:crypto";
import { type Figures, figuresOf, type Scored } from "./retrieval-figures.ts";

/** Everything that is asked with a question. */
export interface AskedQuestion {
  readonly question: string;
  readonly expect: readonly string[];
  readonly answer?: string | undefined;
  /** The only folder that is searched, if there is one. */
  readonly source?: string | undefined;
}

/** A question's result, with the id of the question. */
export interface IdentifiedResult extends Scored {
  readonly id: string;
}

/** A question whose result changed. */
export interface Change<Q> {
  readonly question: Q;
  readonly before: Scored;
  readonly now: Scored;
}

/** Results compared with earlier ones, over the questions that are in both unchanged. */
export interface Comparison<Q> {
  readonly before: Figures;
  readonly now: Figures;
  readonly worse: readonly Change<Q>[];
  readonly better: readonly Change<Q>[];
}

/** Names a question in earlier results: changes with everything that is asked. */
export function questionId({ question, expect, answer, source }: AskedQuestion): string {
  return hash("sha256", JSON.stringify([question, expect, answer ?? null, source ?? null])).slice(0, 16);
}

/**
 * Compares results with earlier ones. A question got worse if an expected file ranks lower or its answer is no longer in the
 * passages, and better if neither got worse and one improved. Pure.
 */
export function compareResults<Q>(
  earlier: readonly IdentifiedResult[],
  results: readonly (IdentifiedResult & { readonly question: Q })[],
): Comparison<Q> {
  const byId = new Map(earlier.map((result) => [result.id, result]));
  const changes = results.flatMap(({ id, question, rank, answered }): Change<Q>[] => {
    const before = byId.get(id);
    if (before === undefined) return [];
    return [{ question, before: { rank: before.rank, answered: before.answered }, now: { rank, answered } }];
  });
  const isWorse = ({ before, now }: Change<Q>): boolean => isBelow(now, before);
  const isBetter = ({ before, now }: Change<Q>): boolean => isBelow(before, now);
  const figures = (scored: readonly Scored[]): Figures =>
    figuresOf(scored.map((result) => ({ ...result, ms: null })));
  return {
    before: figures(changes.map(({ before }) => before)),
    now: figures(changes.map(({ now }) => now)),
    worse: changes.filter(isWorse),
    better: changes.filter((change) => !isWorse(change) && isBetter(change)),
  };
}

/** Whether one result is below another in rank or answer. */
function isBelow(one: Scored, other: Scored): boolean {
  return (one.rank ?? Infinity) > (other.rank ?? Infinity) || Number(one.answered) < Number(other.answered);
}
