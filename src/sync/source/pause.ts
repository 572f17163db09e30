import { type Counted, countedAs } from "../agenda/counted.ts";
import type { Unsent } from "../pass/pass.ts";
import type { RelativePath } from "../plan/model.ts";

/** Whether a source is paused, and what has come up since to be sent after the pause. */
export interface Pause {
  isPaused(): boolean;
  begin(): void;
  /** Ends the pause. Forgets what came up, because the whole source is checked then. */
  end(): void;
  /** Records what a check found. It replaces what was known in the scope of the check. */
  note(unsent: Unsent): void;
  has(path: RelativePath): boolean;
  paths(): Iterable<RelativePath>;
  /** Number of files whose row counts as nothing, or as one in agreement. */
  size(): number;
  /** Number of them that have a row in agreement: an older version of theirs. */
  agreed(): number;
}

/** Opens the pause of a source. */
export function openPause(isPaused: boolean): Pause {
  let paused = isPaused;
  /** Paths to send, and how their rows count. */
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
    note: ({ candidates, inScope }) => {
      for (const path of backlog.keys()) if (inScope(path)) backlog.delete(path);
      for (const { entry, known } of candidates) backlog.set(entry.path, countedAs(known?.state));
    },
    has: (path) => backlog.has(path),
    paths: () => backlog.keys(),
    size: () => count("nothing") + count("agreed"),
    agreed: () => count("agreed"),
  };
}
