import type { Deletion } from "./pass/deletes.ts";
import type { RelativePath } from "./plan/model.ts";
import { parkMs } from "./plan/retry.ts";
import { isBelow } from "./source-path.ts";

/** Deletes that the service would not do, each to be sent again at a time. */
export interface RefusedDeletes {
  /** It was refused once more. Returns when it is sent again. */
  add(deletion: Deletion, nowMs: number): number;
  /** It is done. */
  remove(id: number): void;
  has(id: number): boolean;
  /** Those whose time has come. */
  due(nowMs: number): Deletion[];
  /** When each is sent again. */
  times(): Iterable<{ readonly id: number; readonly atMs: number }>;
  /** Makes those at or below a path due. */
  hurry(below: RelativePath | undefined, nowMs: number): void;
}

/** None was refused. */
export function openRefusedDeletes(): RefusedDeletes {
  const refused = new Map<number, { readonly deletion: Deletion; atMs: number; tries: number }>();
  return {
    add: (deletion, nowMs) => {
      const tries = (refused.get(deletion.id)?.tries ?? 0) + 1;
      const atMs = nowMs + parkMs(tries);
      refused.set(deletion.id, { deletion, atMs, tries });
      return atMs;
    },
    remove: (id) => {
      refused.delete(id);
    },
    has: (id) => refused.has(id),
    due: (nowMs) => [...refused.values()].filter(({ atMs }) => atMs <= nowMs).map(({ deletion }) => deletion),
    times: () => [...refused].map(([id, { atMs }]) => ({ id, atMs })),
    hurry: (below, nowMs) => {
      for (const each of refused.values()) if (isBelow(each.deletion.path, below)) each.atMs = nowMs;
    },
  };
}
