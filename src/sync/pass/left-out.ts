import { setImmediate as nextTurn } from "node:timers/promises";
import type { KnownFile } from "../plan/model.ts";
import type { Rules } from "../rules/rules.ts";

/** Paths tested between two turns of the loop: a test takes some microseconds. */
const ASKED_AT_ONCE = 1000;

/** Returns the missing rows, by id, whose paths the rules leave out. */
export async function leftOutOf(rules: Rules, gone: readonly KnownFile[]): Promise<ReadonlySet<number>> {
  const out = new Set<number>();
  for (const [index, { id, path }] of gone.entries()) {
    if (!rules.wants(path).wanted) out.add(id);
    if (index % ASKED_AT_ONCE === ASKED_AT_ONCE - 1) await nextTurn();
  }
  return out;
}
