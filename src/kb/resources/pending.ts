import type { Tier } from "../../wire/primitives.ts";
import type { Pending } from "../../wire/search.ts";
import type { Index, Scope } from "../store/search-index.ts";
import type { Serving } from "../ingest/serving.ts";

/** The range of a question. */
export interface Searched {
  readonly scope: Scope;
  readonly tier: Tier;
}

/** Counts the documents in the range of a question that wait to be read or embedded. */
export type CountPending = (searched: Searched) => Promise<Pending>;

/** Longest age of a count. */
const AGE_MS_MAX = 1000;
/** Most ranges whose count is remembered. */
const RANGES_MAX = 1000;

interface Counted {
  readonly startMs: number;
  readonly pending: Promise<Pending>;
}

/** Opens the counts, each of which is read once a second at most. Without an embedding model no document waits to be embedded. */
export function openPending(
  index: Pick<Index, "pending">,
  embedderFor: Serving["embedderFor"],
  steadyMs: () => number,
): CountPending {
  const counts = new Map<string, Counted>();
  return async ({ scope, tier }) => {
    const fingerprint = tier === "fastest" ? undefined : (await embedderFor(scope))?.fingerprint;
    const key = JSON.stringify([Object.values(scope), fingerprint]);
    const known = counts.get(key);
    const nowMs = steadyMs();
    if (known !== undefined && nowMs - known.startMs < AGE_MS_MAX) return known.pending;
    const pending = index.pending({ scope, fingerprint });
    const counted = { startMs: nowMs, pending };
    counts.delete(key);
    counts.set(key, counted);
    const [oldest] = counts.keys();
    if (counts.size > RANGES_MAX && oldest !== undefined) counts.delete(oldest);
    pending.catch(() => {
      if (counts.get(key) === counted) counts.delete(key);
    });
    return pending;
  };
}
