import { expect, it } from "vitest";
import { COSINE_NOISE } from "../../../src/kb/search/score.ts";
import { wordSetVector } from "./word-sets.ts";

const WORDS = Array.from({ length: 80 }, (_, at) => `word${at}`);
/** More than a float's rounding, and less than the distance of any other cosine of such small sets. */
const ROUNDING = 1e-6;

function cosine(a: Float32Array, b: Float32Array): number {
  return a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0);
}

it("gives no two texts exactly the cosine up to which a chunk counts as unrelated", () => {
  const queries = WORDS.flatMap((_, from) =>
    [1, 2, 3, 4, 5, 6].map((count) => WORDS.slice(from, from + count).join(" ")),
  );
  const questions = queries.map((query) => ({ query, vector: wordSetVector("one", query) }));
  const undecided = WORDS.flatMap((_, at) => {
    const text = WORDS.slice(0, at + 1).join(" ");
    const vector = wordSetVector("one", text);
    return questions
      .filter((question) => Math.abs(cosine(vector, question.vector) - COSINE_NOISE) < ROUNDING)
      .map(({ query }) => ({ query, text }));
  });
  expect(undecided).toEqual([]);
});
