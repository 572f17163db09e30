import type { Deletion } from "../ledger/intents.ts";
import type { RelativePath } from "../plan/model.ts";
import { parkMs } from "../plan/retry.ts";
import { isBelow } from "../disk/source-path.ts";

/** Deletes that the service would not do, or said to be of no resource of its own, each to be sent again at a time. */
export interface RefusedDeletes {
  /** It was refused once more. Returns when it is sent again. */
  add(deletion: Deletion, nowMs: number): number;
  /** The service said once more that there is no such resource. Returns when it is sent again. */
  addDenied(deletion: Deletion, nowMs: number): number;
  /** How often the service has said so. */
  denials(id: number): number;
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

/** None was refused. `deniedAgainMs` are the waits after denials; the last one counts for further ones. */
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
    hurry: (below, nowMs) => {
      for (const each of refused.values()) if (isBelow(each.deletion.path, below)) each.atMs = nowMs;
    },
  };
}
