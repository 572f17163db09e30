import { createInterface } from "node:readline/promises";
import { KbsyncError } from "../../lib/failure.ts";
import type { Context } from "../output/context.ts";
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

/** Asks for a tier, with a line about each, until an answer is valid. An empty answer selects `byDefault`. */
export async function askTier(ask: Ask, say: (words: string) => void, byDefault: Tier): Promise<Tier> {
  for (const tier of Tier.options) say(`${tier.padEnd(13)}  ${TIER_WORDS[tier]}`);
  for (;;) {
    const answer = (await ask(`Which tier? ${Tier.options.join(", ")} [${byDefault}] `)).trim();
    const tier = Tier.safeParse(answer || byDefault);
    if (tier.success) return tier.data;
    say(`expected one of ${Tier.options.join(", ")}`);
  }
}

/**
 * Runs questions on the terminal. Throws `usage` where standard input ends, and the signal's reason at Ctrl-C.
 */
export async function onTerminal<T>(
  context: Pick<Context, "invocation" | "signal" | "stdout">,
  run: (ask: Ask, say: (words: string) => void) => Promise<T>,
): Promise<T> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const ended = Promise.withResolvers<never>();
  // Nothing needs to wait for it.
  ended.promise.catch(() => undefined);
  terminal.on("close", () =>
    ended.reject(
      context.signal.aborted
        ? context.signal.reason
        : new KbsyncError("standard input ended before the last question", { code: "usage" }),
    ),
  );
  // The terminal takes Ctrl-C for itself while a question is open.
  terminal.on("SIGINT", () => void process.kill(process.pid, "SIGINT"));
  context.signal.addEventListener("abort", () => terminal.close(), { once: true });
  // The answer to a question ends its line; Ctrl-C does not.
  const endLine = (): void => context.stdout.write("\n");
  const ask: Ask = async (question) => {
    context.signal.addEventListener("abort", endLine, { once: true });
    try {
      return await Promise.race([terminal.question(question), ended.promise]);
    } finally {
      context.signal.removeEventListener("abort", endLine);
    }
  };
  try {
    return await run(ask, (words) => context.stdout.write(`  ${words}\n`));
  } finally {
    terminal.close();
  }
}
