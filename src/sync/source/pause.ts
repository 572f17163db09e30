import { type Counted, countedAs } from "../agenda/counted.ts";
import type { Unsent } from "../pass/pass.ts";
import type { RelativePath } from "../plan/model.ts";

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
  /** Those whose row counts as nothing, or as one in agreement. */
  size(): number;
  /** How many of them have a row in agreement: an older version of theirs. */
  agreed(): number;
}

/** Opens the pause of a source. */
export function openPause(isPaused: boolean): Pause {
  let paused = isPaused;
  /** Paths to be sent, and what their rows count as. */
  const backlog = new Map<RelativePath, Counted>();
  const count = (as: Counted): number => [...backlog.values()].filter((each) => each === as).length;
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
      for (const { entry, known } of looks) backlog.set(entry.path, countedAs(known?.state));
    },
    has: (path) => backlog.has(path),
    paths: () => backlog.keys(),
    size: () => count("nothing") + count("agreed"),
    agreed: () => count("agreed"),
  };
}
