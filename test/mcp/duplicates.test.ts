import { expect, it } from "vitest";
import { collapseAnswers } from "../../src/mcp/duplicates.ts";
import type { SearchAnswer, SearchResult } from "../../src/wire/search.ts";

const TEXT = "The harbour master rings the bell twice when the fog comes in from the west.";

function resultOf(id: string, score: number, content: string, more: object = {}): SearchResult {
  const payload = {
    resourceId: `r-${id}`,
    collectionId: "c",
    ownerId: "o",
    title: `T-${id}`,
    content,
    ...more,
  };
  return { id, version: 1, score, payload };
}

function answerOf(...results: SearchResult[]): SearchAnswer {
  return { results, fallback: undefined } as unknown as SearchAnswer; // all that is read of it
}

it("collapses nearly equal texts of several answers into the best one, which counts the others", () => {
  const counted = { duplicates: 2, duplicateDocuments: [{ resourceId: "r-z", title: "T-z" }] };
  const found = collapseAnswers([
    answerOf(resultOf("a", 0.6, TEXT, counted), resultOf("b", 0.5, "The bell is silent in fog.")),
    answerOf(resultOf("c", 0.9, `# ${TEXT}`)),
  ]);
  expect(found.map(({ results }) => results.map(({ id }) => id))).toEqual([["b"], ["c"]]);
  expect(found[1]?.results[0]?.payload).toMatchObject({
    duplicates: 3,
    duplicateDocuments: [
      { resourceId: "r-a", title: "T-a" },
      { resourceId: "r-z", title: "T-z" },
    ],
  });
  expect(found[0]?.results[0]?.payload.duplicates).toBeUndefined();
});

it("collapses the same of each answer whatever the order of the answers, and names no document as its own copy", () => {
  const one = resultOf("a", 0.5, TEXT);
  const other = resultOf("b", 0.5, TEXT, { resourceId: "r-a" });
  for (const answers of [
    [answerOf(one), answerOf(other)],
    [answerOf(other), answerOf(one)],
  ]) {
    const kept = collapseAnswers(answers).flatMap(({ results }) => results);
    expect(kept.map(({ id }) => id)).toEqual(["a"]);
    expect(kept[0]?.payload.duplicates).toBe(1);
    expect(kept[0]?.payload).not.toHaveProperty("duplicateDocuments");
  }
});
