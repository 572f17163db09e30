import { KbsyncError } from "../../../lib/failure.ts";
import { readAnswer } from "./answer.ts";
import type { TextModel } from "./text-model.ts";
import { askedAgain, boundaryQuestion } from "./prompt.ts";

/** Characters shown at once: some 3,000 tokens, which small models still read with care. */
const WINDOW_CHARS = 12_000;
/** Pieces shown at once: with more, models lose count. */
const WINDOW_PIECES = 60;
/** Questions about one document: 100 windows of it. What is longer would take an hour and more. */
const QUESTIONS_MAX = 100;
/** Answers of one question that are looked at. A model that answers nonsense three times goes on so. */
const ANSWERS_MAX = 3;
/** Longest text asked about: windows move on by half of themselves at least, as a rule. */
const TEXT_CHARS_MAX = (QUESTIONS_MAX * WINDOW_CHARS) / 2;

/**
 * Lets a model find the boundaries of a text given as pieces: the numbers of the pieces that begin a passage, ascending,
 * without 0. A long text is shown window by window; each begins where the last passage of the one before began, which may
 * go on. Throws `language_model_answer` where no answer can be used, `language_model_too_long`, and what the model throws.
 */
export async function findBoundaries(
  texts: readonly string[],
  chunkSize: number,
  model: TextModel,
  signal: AbortSignal,
): Promise<readonly number[]> {
  // Told before the first question, not after the last.
  if (texts.reduce((sum, text) => sum + text.length, 0) > TEXT_CHARS_MAX) throw tooLong();
  const begins: number[] = [];
  let from = 0;
  let questions = 0;
  while (from < texts.length - 1) {
    const to = windowEnd(texts, from);
    if (questions++ >= QUESTIONS_MAX) throw tooLong();
    const splitAfter = await askAbout(texts, from, to, chunkSize, model, signal);
    begins.push(...splitAfter.map((number) => number + 1));
    const open = begins.at(-1) ?? 0;
    // A window without a boundary is one passage, and is not looked at again.
    from = to < texts.length && open > from ? open : to;
  }
  return begins;
}

/** The end of the window that begins at a piece: at least two pieces, for one alone asks nothing. */
function windowEnd(texts: readonly string[], from: number): number {
  let to = from;
  let chars = 0;
  while (to < texts.length && to - from < WINDOW_PIECES) {
    chars += texts[to]?.length ?? 0;
    if (chars > WINDOW_CHARS && to - from >= 2) break;
    to++;
  }
  return to;
}

async function askAbout(
  texts: readonly string[],
  from: number,
  to: number,
  chunkSize: number,
  model: TextModel,
  signal: AbortSignal,
): Promise<readonly number[]> {
  const pieces = texts.slice(from, to).map((text, at) => ({ number: from + at, text }));
  const first = boundaryQuestion(pieces, chunkSize);
  let question = first;
  let flaw = "";
  for (let answers = 0; answers < ANSWERS_MAX; answers++) {
    try {
      const answer = await model.complete(question, signal);
      const read = readAnswer(answer, from, to - 1);
      if ("splitAfter" in read) return read.splitAfter;
      flaw = read.flaw;
      question = askedAgain(first, answer, flaw);
    } catch (error) {
      // One that was cut off or filtered counts as an answer, too; that nobody answers does not.
      if (!(error instanceof KbsyncError) || error.code !== "language_model_answer") throw error;
      flaw = error.message;
      question = askedAgain(first, undefined, flaw);
    }
  }
  throw new KbsyncError(`the language model gave no boundaries: ${flaw}`, {
    code: "language_model_answer",
    subject: model.name,
  });
}

function tooLong(): KbsyncError {
  return new KbsyncError("the text is too long to ask a language model about", {
    code: "language_model_too_long",
  });
}
