import { Tier } from "../../wire/primitives.ts";

/** Puts a question to a person and resolves with the answer as it was typed. Rejects when the person goes. */
export type Ask = (question: string) => Promise<string>;

/** What each tier finds by, and what it costs. */
export const TIER_WORDS: Readonly<Record<Tier, string>> = {
  fastest: "by words; costs nothing, files are searchable at once",
  moderate: "by words at once; by meaning, about 4 passages a second per processor",
  high_accuracy: "the same, also sentence by sentence; takes twice as long",
};

/** Asks for a tier, each explained in a line; an empty answer takes `byDefault`. */
export async function askTier(ask: Ask, say: (words: string) => void, byDefault: Tier): Promise<Tier> {
  for (const tier of Tier.options) say(`${tier.padEnd(13)} ${TIER_WORDS[tier]}`);
  return askUntil(
    ask,
    say,
    `How is it searched? ${Tier.options.join(", ")} [${byDefault}] `,
    (answer) => Tier.safeParse(answer || byDefault).data,
    `expected one of ${Tier.options.join(", ")}`,
  );
}

/** Asks until an answer can be read. */
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
