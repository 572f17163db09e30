import { Tier } from "../../wire/primitives.ts";

/** Asks a person, and resolves with the answer as typed. Rejects if the person quits. */
export type Ask = (question: string) => Promise<string>;

/** The method and the cost of each tier. */
export const TIER_WORDS: Readonly<Record<Tier, string>> = {
  fastest: "by words, at once; no extra work",
  moderate:
    "by words at once, by meaning later, the newest change first (about 4 passages a second per processor)",
  high_accuracy: "as moderate, and compares single sentences; takes twice as long",
};

/** Asks for a tier, with a line about each. An empty answer selects `byDefault`. */
export async function askTier(ask: Ask, say: (words: string) => void, byDefault: Tier): Promise<Tier> {
  for (const tier of Tier.options) say(`${tier.padEnd(13)}  ${TIER_WORDS[tier]}`);
  return askUntil(
    ask,
    say,
    `Which tier? ${Tier.options.join(", ")} [${byDefault}] `,
    (answer) => Tier.safeParse(answer || byDefault).data,
    `expected one of ${Tier.options.join(", ")}`,
  );
}

/** Asks until an answer is valid. */
export async function askUntil<T>(
  ask: Ask,
  complain: (words: string) => void,
  question: string,
  read: (answer: string) => T | undefined,
  expected: string,
): Promise<T> {
  for (;;) {
    const value = read((await ask(question)).trim());
    if (value !== undefined) return value;
    complain(expected);
  }
}
