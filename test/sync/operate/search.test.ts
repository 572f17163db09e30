import { expect, it } from "vitest";
import { countTokens } from "../../../src/lib/tokens.ts";
import { bestResults } from "../../../src/sync/operate/search.ts";
import type { SearchAnswer } from "../../../src/wire/search.ts";

function answer(owner: string, scores: readonly number[]): SearchAnswer {
  const results = scores.map((score) => ({
    id: `${owner} ${score}`,
    version: 1,
    score,
    payload: { resourceId: owner, collectionId: "c", content: `${owner} says ${score}`, ownerId: owner },
  }));
  return { success: true, text: results.map(({ payload }) => payload.content).join("\n\n"), results };
}

it("takes the best results of several answers, as many as the tokens allow", () => {
  const answers = [answer("ann", [0.9, 0.5, 0.3]), answer("bob", [0.7, 0.6])];
  const ids = (tokensMax?: number): string[] => bestResults(answers, 4, tokensMax).map(({ id }) => id);
  const all = ["ann 0.9", "bob 0.7", "bob 0.6", "ann 0.5"];
  expect(ids()).toEqual(all);
  const two = countTokens("ann says 0.9\n\nbob says 0.7");
  expect(ids(two)).toEqual(all.slice(0, 2));
  expect(ids(two - 1)).toEqual(all.slice(0, 1));
});
