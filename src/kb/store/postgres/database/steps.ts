import type { Steps } from "../../sql/steps.ts";
import type { Transaction } from "./connections.ts";

/** Runs steps inside a transaction. Statements that are yielded together are sent together. */
export async function runSteps<T>(tx: Transaction, steps: Steps<T>): Promise<T> {
  let next = steps.next([]);
  while (next.done !== true) {
    next = steps.next(
      await Promise.all(
        next.value.map(({ text, parameters, returns }) =>
          returns === "rows" ? tx.all(text, parameters) : tx.run(text, parameters),
        ),
      ),
    );
  }
  return next.value;
}
