import { setTimeout as sleep } from "node:timers/promises";
import type { ActionContext } from "../send/context.ts";
import type { IdentitySource } from "./listed.ts";
import { gather, type Gathered } from "./situation.ts";

/** Number of lists until two in a row must have shown the same. */
const LISTS_MAX = 4;

/**
 * Reads a source's lists until two in a row show the same. A list that omits resources looks like any other, and those it omits
 * would be created again.
 */
export async function gatherTwice(
  context: ActionContext,
  source: IdentitySource,
  { signal }: { readonly signal: AbortSignal },
): Promise<Gathered | "unclear" | undefined> {
  let before = await gather(context, source, { signal });
  for (let lists = 2; before !== undefined; lists += 1) {
    // A service without pages may truncate the list at the limit it was given.
    const after = await gather(context, source, { signal, isUnlimited: !before.isPaged });
    if (after === undefined) return undefined;
    if (isSameSet(before.unowned, after.unowned)) return after;
    if (lists >= LISTS_MAX) return "unclear";
    before = after;
    await sleep(context.timing.listAgainMs, undefined, { signal });
  }
  return undefined;
}

function isSameSet(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === b.size && [...a].every((each) => b.has(each));
}
