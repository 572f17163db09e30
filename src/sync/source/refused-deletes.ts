import type { Deletion } from "../ledger/intents/deletes.ts";
import type { RelativePath } from "../plan/model.ts";
import { parkMs } from "../plan/retry.ts";
import { isBelow } from "../disk/source-path.ts";

/** Deletes that the service refused or answered with a mere 404, each with the time of its next attempt. */
export interface RefusedDeletes {
  /** Records another refusal. Returns the time of the next attempt. */
  add(deletion: Deletion, nowMs: number): number;
  /** Records another 404. Returns the time of the next attempt. */
  addDenied(deletion: Deletion, nowMs: number): number;
  /** Number of 404s so far. */
  denials(id: number): number;
  /** Removes a delete that is done. */
  remove(id: number): void;
  has(id: number): boolean;
  /** Returns the deletes that are due. */
  due(nowMs: number): Deletion[];
  /** Returns the times of the next attempts. */
  times(): Iterable<{ readonly id: number; readonly atMs: number }>;
  /** Makes the deletes at or below a path due. */
  makeDue(below: RelativePath | undefined, nowMs: number): void;
}

/** Opens an empty list. `deniedAgainMs` are the waits after 404s; the last one repeats. */
export function openRefusedDeletes(deniedAgainMs: readonly number[] = []): RefusedDeletes {
  const refused = new Map<
    number,
    { readonly deletion: Deletion; atMs: number; tries: number; denials: number }
  >();
  const before = (id: number): { readonly tries: number; readonly denials: number } =>
    refused.get(id) ?? { tries: 0, denials: 0 };
  return {
    add: (deletion, nowMs) => {
      const { tries, denials } = before(deletion.id);
      const atMs = nowMs + parkMs(tries + 1);
      refused.set(deletion.id, { deletion, atMs, tries: tries + 1, denials });
      return atMs;
    },
    addDenied: (deletion, nowMs) => {
      const { tries, denials } = before(deletion.id);
      const atMs = nowMs + (deniedAgainMs[denials] ?? deniedAgainMs.at(-1) ?? 0);
      refused.set(deletion.id, { deletion, atMs, tries, denials: denials + 1 });
      return atMs;
    },
    denials: (id) => before(id).denials,
    remove: (id) => {
      refused.delete(id);
    },
    has: (id) => refused.has(id),
    due: (nowMs) => [...refused.values()].filter(({ atMs }) => atMs <= nowMs).map(({ deletion }) => deletion),
    times: () => [...refused].map(([id, { atMs }]) => ({ id, atMs })),
    makeDue: (below, nowMs) => {
      for (const each of refused.values()) if (isBelow(each.deletion.path, below)) each.atMs = nowMs;
    },
  };
}
