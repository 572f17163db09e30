import { KbsyncError } from "../../lib/failure.ts";
import { readStatus } from "../../sync/operate/status.ts";
import type { SourceStatus } from "../../wire/daemon-status.ts";
import { type Pending, pendingText } from "../../wire/search.ts";
import { isRestarting, type Operator } from "./ask.ts";
import { mayBeOld } from "./fresh.ts";

/** The files that searches do not find as they are on disk, by folder. */
export interface Unsent {
  readonly folders: readonly Pick<SourceStatus, "reading" | "waiting">[];
  /** Why a daemon that runs does not count them. */
  readonly problem?: string | undefined;
}

export const ALL_SENT: Unsent = { folders: [] };

/** Counts them by the daemon, or by the ledger if none answers: a search needs the service alone. */
export async function countUnsent({ ask, config }: Pick<Operator, "ask" | "config">): Promise<Unsent> {
  let problem: string | undefined;
  const live = await ask("status", {}).catch((error: unknown) => {
    if (!(error instanceof KbsyncError)) throw error;
    if (!isRestarting(error)) problem = error.message;
  });
  const folders = (live ?? readStatus(config.stateDir, 0))?.sources ?? [];
  return { folders, problem };
}

/** Says what is not searchable yet, by these counts and the answer of a search. */
export function unsentLines({ folders, problem }: Unsent, pending: Pending): readonly string[] {
  const words = pendingText(pending, folders);
  return [...(words === undefined ? [] : [words]), ...(problem === undefined ? [] : [mayBeOld(problem)])];
}
