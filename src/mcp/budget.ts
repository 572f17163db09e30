import { z } from "zod";
import { countTokens } from "../lib/tokens.ts";

/** Most tokens of an answer that a search or a list gives by default. Clients put answers into a model's window whole. */
export const ANSWER_TOKENS = 5000;

/** The argument of a list that continues it. */
export const Cursor = z
  .string()
  .max(2000)
  .optional()
  .describe("next_cursor of the previous answer. Default: the first page.");

/** The pointer of a page of a list to the next one. */
export const NextCursor = z.string().nullable().describe("Cursor of the next page; null on the last one.");

/** Part of the budget for what surrounds the entries of an answer: a long cursor takes 200 tokens. */
const FRAME_TOKENS = 300;

/** Returns the first entries whose JSON fits into an answer; at least one, so that paging advances. */
export function fitting<T>(entries: readonly T[], tokensMax: number = ANSWER_TOKENS): readonly T[] {
  let tokens = FRAME_TOKENS;
  const over = entries.findIndex((entry) => {
    tokens += tokensOf(entry);
    return tokens > tokensMax;
  });
  return over === -1 ? entries : entries.slice(0, Math.max(1, over));
}

/** Whether an answer with this entry alone has at most so many tokens. */
export function fitsAlone(entry: unknown, tokensMax: number): boolean {
  return FRAME_TOKENS + tokensOf(entry) <= tokensMax;
}

/** Tokens of an entry's JSON with the comma behind it. */
function tokensOf(entry: unknown): number {
  return countTokens(JSON.stringify(entry)) + 1;
}

/** Reads a page of up to `limit` entries, and a shorter one if that does not fit into an answer. */
export async function readFitting<P extends { readonly entries: readonly unknown[] }>(
  limit: number,
  read: (limit: number) => Promise<P>,
): Promise<P> {
  const page = await read(limit);
  const { length } = fitting(page.entries);
  return length === page.entries.length ? page : readFitting(length, read);
}

/** Returns the text, or its beginning with an ellipsis if it is longer than `charsMax`. No surrogate pair is split. */
export function cutText(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, wholeCharacter(text, charsMax - 1))}…`;
}

/** Returns the index, or the one before it if it would split a surrogate pair. */
export function wholeCharacter(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  const before = text.charCodeAt(at - 1);
  const parts = unit >= 0xdc00 && unit <= 0xdfff && before >= 0xd800 && before <= 0xdbff;
  return parts ? at - 1 : at;
}
