import { z } from "zod";

/** Pieces from which cutting behind every single one is no division but a failure to divide. */
const EVERY_PIECE_MIN = 8;

const Answer = z.object({ split_after: z.array(z.int()) });

/** What an answer says, or in words what is wrong with it. */
export type ReadAnswer = { readonly splitAfter: readonly number[] } | { readonly flaw: string };

/**
 * Reads a model's answer about the pieces `first` to `last`. Words and fences around the object are let pass, for models
 * like to talk; in the object nothing is: a number out of range means that the model has lost the thread.
 */
export function readAnswer(answer: string, first: number, last: number): ReadAnswer {
  const object = answer.slice(answer.indexOf("{"), answer.lastIndexOf("}") + 1);
  let json: unknown;
  try {
    json = JSON.parse(object);
  } catch {
    return { flaw: "it holds no JSON object" };
  }
  const parsed = Answer.safeParse(json);
  if (!parsed.success) return { flaw: 'expected {"split_after": [whole numbers]}' };
  const splitAfter = parsed.data.split_after;
  if (splitAfter.some((number) => number < first || number >= last))
    return { flaw: `expected numbers from ${first} to ${last - 1}` };
  if (splitAfter.some((number, at) => at > 0 && number <= (splitAfter[at - 1] ?? number)))
    return { flaw: "expected ascending numbers, each once" };
  if (last - first + 1 >= EVERY_PIECE_MIN && splitAfter.length === last - first)
    return { flaw: "it divides after every piece" };
  return { splitAfter };
}
