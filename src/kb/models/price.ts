/** Tokens of one answer as the endpoint counts them; 0 for missing counts. */
export interface ModelUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Input tokens read from the endpoint's cache, and written to it. */
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

/** Configured properties of a model. Prices are per million tokens, in any one currency. */
export interface ModelFacts {
  readonly contextTokens?: number | undefined;
  readonly inputPrice: number;
  readonly outputPrice: number;
}

const MILLION = 1_000_000;

/** Returns the price of an answer; 0 for an unknown model. */
export function costOf(usage: ModelUsage, facts: ModelFacts | undefined): number {
  if (facts === undefined) return 0;
  return (usage.inputTokens * facts.inputPrice + usage.outputTokens * facts.outputPrice) / MILLION;
}

/** Adds up the tokens of several answers. */
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
