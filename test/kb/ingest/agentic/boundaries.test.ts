import { describe, expect, it } from "vitest";
import { findBoundaries } from "../../../../src/kb/ingest/agentic/boundaries.ts";

/** Has a model without boundaries divide `pieces` short pieces; returns the outcome and the number of questions. */
async function divide(pieces: number) {
  let questions = 0;
  const model = {
    name: "dividing",
    complete: async () => {
      questions++;
      return '{"split_after": []}';
    },
  };
  const texts = Array.from({ length: pieces }, (_, at) => `Piece ${at}.`);
  const outcome = await findBoundaries(texts, 500, model, new AbortController().signal).catch(
    (error: unknown) => error,
  );
  return { outcome, questions };
}

/** Pieces of 100 full windows. */
const PIECES = 100 * 60;

describe("findBoundaries", () => {
  it("a document may take 100 questions", async () => {
    expect(await divide(PIECES)).toEqual({ outcome: [], questions: 100 });
  });

  it("a document that needs another question is too long, and the question is not asked", async () => {
    const { outcome, questions } = await divide(PIECES + 2);
    expect(outcome).toMatchObject({ code: "language_model_too_long" });
    expect(questions).toBe(100);
  });
});
