import { describe, expect, it } from "vitest";
import { costOf, NO_USAGE, sumUsage, type ModelUsage } from "../../../src/kb/models/price.ts";

const usage = (inputTokens: number, cacheReadTokens: number, outputTokens: number): ModelUsage => ({
  ...NO_USAGE,
  inputTokens,
  cacheReadTokens,
  outputTokens,
});

describe("the price of an answer", () => {
  const prices = { inputPrice: 2, outputPrice: 10 };
  it.each([
    ["of an unknown model is nothing", usage(1e6, 0, 1e6), undefined, 0],
    ["of no tokens is nothing", NO_USAGE, prices, 0],
    ["is per million tokens, by direction", usage(1e6, 0, 5e5), prices, 7],
    ["of cached tokens is that of others", usage(1e6, 4e5, 0), prices, 2],
  ])("the cost %s", (_name, tokens, facts, cost) => {
    expect(costOf(tokens, facts)).toBeCloseTo(cost, 10);
  });
});

it("sumUsage adds up each kind of token", () => {
  const one = {
    inputTokens: 1,
    outputTokens: 20,
    cacheReadTokens: 300,
    cacheCreationTokens: 4000,
    reasoningTokens: 50_000,
  };
  expect(sumUsage([])).toEqual(NO_USAGE);
  expect(sumUsage([one, NO_USAGE, one])).toEqual({
    inputTokens: 2,
    outputTokens: 40,
    cacheReadTokens: 600,
    cacheCreationTokens: 8000,
    reasoningTokens: 100_000,
  });
  expect(Object.values(NO_USAGE)).toEqual([0, 0, 0, 0, 0]);
});
