/** Tokens of one answer, as the endpoint counted them; 0 where it did not. */
export interface ModelUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Of the input, what was read from the endpoint's cache, and what was written into it. */
  readonly cacheReadTokens: number;
  readonly cacheCreationTokens: number;
  readonly reasoningTokens: number;
}

export const NO_USAGE: ModelUsage = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheCreationTokens: 0,
  reasoningTokens: 0,
};

/** What is known of a model beforehand. Prices are of a million tokens, in whatever currency they were written in. */
export interface ModelFacts {
  readonly contextTokens?: number | undefined;
  readonly inputPrice: number;
  /** Default: `inputPrice`. */
  readonly cachedInputPrice?: number | undefined;
  readonly outputPrice: number;
}

const MILLION = 1_000_000;

/** The price of an answer; 0 for a model of which nothing is known. */
export function costOf(usage: ModelUsage, facts: ModelFacts | undefined): number {
  if (facts === undefined) return 0;
  const { inputPrice, outputPrice, cachedInputPrice = inputPrice } = facts;
  const cached = Math.min(usage.cacheReadTokens, usage.inputTokens);
  const fresh = usage.inputTokens - cached;
  return (fresh * inputPrice + cached * cachedInputPrice + usage.outputTokens * outputPrice) / MILLION;
}

/** The tokens of several answers together. */
export function sumUsage(usages: readonly ModelUsage[]): ModelUsage {
  const sum = (count: (usage: ModelUsage) => number): number =>
    usages.reduce((total, usage) => total + count(usage), 0);
  return {
    inputTokens: sum(({ inputTokens }) => inputTokens),
    outputTokens: sum(({ outputTokens }) => outputTokens),
    cacheReadTokens: sum(({ cacheReadTokens }) => cacheReadTokens),
    cacheCreationTokens: sum(({ cacheCreationTokens }) => cacheCreationTokens),
    reasoningTokens: sum(({ reasoningTokens }) => reasoningTokens),
  };
}
