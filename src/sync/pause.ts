import type { Unsent } from "./pass/pass.ts";
import type { RelativePath } from "./plan/model.ts";

/** Whether a source is paused, and what has come up since that is to be sent when it goes on. */
export interface Pause {
  isPaused(): boolean;
  begin(): void;
  /** It goes on: what came up is forgotten, for the whole source is looked at then. */
  end(): void;
  /** Notes what a look found; of what it looked at, only that is left. */
  note(unsent: Unsent): void;
  has(path: RelativePath): boolean;
  paths(): Iterable<RelativePath>;
  size(): number;
  /** How many of them have a row in agreement: an older version of theirs. */
  agreed(): number;
}

/** Opens the pause of a source. */
export function openPause(isPaused: boolean): Pause {
  let paused = isPaused;
  /** Paths to be sent, and whether each has a row in agreement. */
  const backlog = new Map<RelativePath, boolean>();
  return {
    isPaused: () => paused,
    begin: () => {
      paused = true;
    },
    end: () => {
      paused = false;
      backlog.clear();
    },
    note: ({ looks, inScope }) => {
      for (const path of backlog.keys()) if (inScope(path)) backlog.delete(path);
      for (const { entry, known } of looks) backlog.set(entry.path, known?.state === "agreed");
    },
    has: (path) => backlog.has(path),
    paths: () => backlog.keys(),
    size: () => backlog.size,
    agreed: () => [...backlog.values()].filter(Boolean).length,
  };
}
