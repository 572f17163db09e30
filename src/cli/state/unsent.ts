import { KbsyncError } from "../../lib/failure.ts";
import { readStatus } from "../../sync/operate/status.ts";
import type { SourceStatus } from "../../wire/daemon-status.ts";
import { type Pending, pendingText } from "../../wire/search.ts";
import { isRestarting, type Operator } from "./ask.ts";
import { mayBeOld } from "./fresh.ts";

/** The files that searches do not find as they are on disk, by folder. */
export interface Unsent {
  readonly folders: readonly Pick<SourceStatus, "reading" | "waiting">[];
  /** By a daemon. The ledger cannot tell files that the service is reading from those that wait, so both wait, as in `status`. */
  readonly isLive: boolean;
  /** Why a daemon that runs does not count them. */
  readonly problem?: string | undefined;
}

export const ALL_SENT: Unsent = { folders: [], isLive: true };

/** Counts them by the daemon, or by the ledger if none answers: a search needs the service alone. */
export async function countUnsent({ ask, config }: Pick<Operator, "ask" | "config">): Promise<Unsent> {
  let problem: string | undefined;
  const live = await ask("status", {}).catch((error: unknown) => {
    if (!(error instanceof KbsyncError)) throw error;
    if (!isRestarting(error)) problem = error.message;
  });
  const folders = (live ?? readStatus(config.stateDir, 0))?.sources ?? [];
  return { folders, isLive: live !== undefined, problem };
}

/** Says what is not searchable yet, by these counts and the answer of a search. */
export function unsentLines({ folders, isLive, problem }: Unsent, pending: Pending): readonly string[] {
  const counted = isLive ? 0 : folders.reduce((sum, each) => sum + each.waiting, 0);
  const words = pendingText({ ...pending, read: Math.max(0, pending.read - counted) }, folders);
  return [...(words === undefined ? [] : [words]), ...(problem === undefined ? [] : [mayBeOld(problem)])];
}
