import { describe, expect, it } from "vitest";
import { KbsyncError } from "../../../../src/lib/failure.ts";
import { findBoundaries } from "../../../../src/kb/ingest/agentic/boundaries.ts";
import type { ModelMessage } from "../../../../src/kb/models/chat-model.ts";

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

describe("the questions to a model", () => {
  const signal = new AbortController().signal;
  /** Has a model answer with these texts, in order; errors are thrown. Returns the outcome and the questions. */
  async function ask(texts: readonly string[], answers: readonly (string | Error)[]) {
    const questions: (readonly ModelMessage[])[] = [];
    const model = {
      name: "dividing",
      complete: async (question: readonly ModelMessage[], given: AbortSignal) => {
        expect(given).toBe(signal);
        const answer = answers[questions.push(question) - 1] ?? '{"split_after": []}';
        if (answer instanceof Error) throw answer;
        return answer;
      },
    };
    const outcome = await findBoundaries(texts, 500, model, signal).catch((error: unknown) => error);
    /** First and last piece of each question. */
    const windows = questions.map((question) => {
      const numbers = [...(question[1]?.text ?? "").matchAll(/<piece number="(\d+)">/g)].map(([, number]) =>
        Number(number),
      );
      return [numbers[0], numbers.at(-1)];
    });
    return { outcome, windows, questions };
  }
  const pieces = (count: number, chars = 10): string[] =>
    Array.from({ length: count }, () => "x".repeat(chars));

  it("the questions to a model are about 60 pieces at most, and the next begins with the last passage of the one before", async () => {
    const { outcome, windows } = await ask(pieces(100), [
      '{"split_after": [9, 39]}',
      '{"split_after": [70]}',
    ]);
    expect(windows).toEqual([
      [0, 59],
      [40, 99],
    ]);
    expect(outcome).toEqual([10, 40, 71]);
  });

  it("the questions to a model go on behind a window without a boundary", async () => {
    const { outcome, windows } = await ask(pieces(100), []);
    expect(windows).toEqual([
      [0, 59],
      [60, 99],
    ]);
    expect(outcome).toEqual([]);
  });

  it("the questions to a model have 12,000 characters at most, but two pieces at least", async () => {
    expect((await ask(pieces(4, 6000), [])).windows).toEqual([
      [0, 1],
      [2, 3],
    ]);
    expect((await ask(pieces(4, 7000), [])).windows).toEqual([
      [0, 1],
      [2, 3],
    ]);
    expect((await ask(pieces(6, 4001), [])).windows).toEqual([
      [0, 1],
      [2, 3],
      [4, 5],
    ]);
  });

  it("a model is asked nothing about a text of one piece, or of none", async () => {
    expect([(await ask(pieces(1), [])).windows, (await ask([], [])).windows]).toEqual([[], []]);
  });

  it("a model is asked nothing about a text that would take too many questions", async () => {
    const { outcome, windows } = await ask(pieces(61, 10_000), []);
    expect(outcome).toMatchObject({ code: "language_model_too_long" });
    expect(windows).toEqual([]);
    expect((await ask(pieces(60, 10_000), [])).outcome).toEqual([]);
  });

  it("the questions to a model name the pieces and the size of a passage", async () => {
    const { questions } = await ask(["One.", "Two."], []);
    const [system, user] = questions[0] ?? [];
    expect(system?.text).toContain("up to 500 characters");
    expect(system?.text).toContain("numbers from 0 to 0");
    expect(user?.text).toBe('<piece number="0">\nOne.\n</piece>\n<piece number="1">\nTwo.\n</piece>');
  });

  it("the questions to a model are repeated with what was wrong, and with an answer that was complete", async () => {
    const cut = new KbsyncError("it was cut off", { code: "language_model_answer" });
    const { outcome, questions } = await ask(pieces(3), ["no", cut, '{"split_after": [0]}']);
    expect(outcome).toEqual([1]);
    const roles = questions.map((question) => question.slice(2).map(({ role, text }) => [role, text]));
    expect(roles).toEqual([
      [],
      [
        ["assistant", "no"],
        [
          "user",
          "Your answer could not be used: it contains no JSON object. Answer again, with the JSON object alone.",
        ],
      ],
      [["user", "Your answer could not be used: it was cut off. Answer again, with the JSON object alone."]],
    ]);
  });

  it("the questions to a model end after three answers of no use, and at once with an outage", async () => {
    const { outcome, windows } = await ask(pieces(3), ["no", "no", "no", '{"split_after": [0]}']);
    expect(outcome).toMatchObject({
      code: "language_model_answer",
      subject: "dividing",
      message: "the language model gave no boundaries: it contains no JSON object",
    });
    expect(windows).toHaveLength(3);
    for (const outage of [
      new KbsyncError("gone", { code: "language_model_unreachable" }),
      new Error("bug"),
    ]) {
      const ended = await ask(pieces(3), [outage]);
      expect([ended.outcome, ended.windows.length]).toEqual([outage, 1]);
    }
  });
});
