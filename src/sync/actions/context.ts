import type { Turns } from "../../lib/turns.ts";
import type { Activity } from "../ledger/activity.ts";
import type { DocumentReader } from "../read/reader.ts";
import type { CreateIntent, Deletion } from "../ledger/intents.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { RelativePath } from "../plan/model.ts";
import type { YieldSlot } from "../queue/queue.ts";
import type { Pacer } from "../remote/pacer.ts";
import type { Remote } from "../remote/remote.ts";
import type { Rules } from "../rules/rules.ts";
import type { Timing } from "../plan/timing.ts";
import type { Trash } from "../trash/trash.ts";
import type { Collections } from "./collections.ts";
import type { MailUploads } from "./mail-uploads.ts";

/** A source whose files may be looking for their resources. */
export interface Seeker {
  /** Owner and collection. */
  readonly place: string;
  /** Whether what another source's creates in doubt may have made too many can be one that a file here is yet to find. */
  seeks(doubts: readonly CreateIntent[]): boolean;
}

/** What all actions share. */
export interface ActionContext {
  readonly ledger: Ledger;
  readonly remote: Remote;
  readonly pacer: Pacer;
  readonly collections: Collections;
  readonly mails: Pick<MailUploads, "isOffered" | "check" | "askAgain" | "onBegin">;
  readonly reader: Pick<DocumentReader, "read">;
  /** Creates that only their title and content tell apart go one after another. */
  readonly twins: Turns;
  /** Sources of one owner and collection adopt one after another: resources of equal files belong to either. */
  readonly adoptions: Turns;
  /** The running sources, as those that may be looking for a resource that a create of another one may have made. */
  readonly seekers: Set<Seeker>;
  /** Resources of creates that the service took and still works on: no row has them yet, and they are nobody else's. */
  readonly following: Set<string>;
  /** Where the texts of deleted files are kept; undefined: nowhere. */
  readonly trash?: Trash | undefined;
  readonly now: () => number;
  readonly timing: Timing;
  /** In [0, 1). */
  readonly random: () => number;
  /** Ends requests under way; the daemon's stop gives them time first. */
  readonly signal: AbortSignal;
  /** Runs what only waits, so that other files are sent meanwhile. Outside of the queue it just waits. */
  readonly yieldSlot: YieldSlot;
  /** A step of a look at the folder was done, however small. Tells work from standing still. */
  readonly moved: () => void;
  /** Notified of every action that was done or given up for now. */
  readonly report: (activity: Activity) => void;
}

/** What actions need of the source they work for. */
export interface ActionSource {
  readonly id: number;
  /** Absolute path of the folder. */
  readonly root: string;
  readonly rules: Rules;
  readonly rulesKey: number;
  /** Whether something happened at the path since its work was planned; then the work is dropped and planned anew. */
  isStale(path: RelativePath): boolean;
  /** Whether nothing may be sent for the source. */
  isPaused(): boolean;
  /** Looks at the path again, now or at a time. */
  lookAgain(path: RelativePath, atMs?: number): void;
  /** Looks at a path again whose file changed while it was read; later, if that happens again and again. */
  lookAgainTorn(path: RelativePath): void;
  /**
   * The file's times do not tell yet whether it is written to again: it is read again at this time, by the system's clock,
   * when its job has ended.
   */
  rereadAt(path: RelativePath, atMs: number): void;
  /**
   * The resource of a row turned out to be gone. Whether it may be made again at once; if not, the whole source is looked at when the
   * service's list has shown whether most are gone.
   */
  mayRemake(row: number): boolean;
  /** Finds out by the list whether a create acted. */
  settle(intent: CreateIntent): Promise<"adopted" | "absent">;
  /** A create was sent more than once: the list may show an extra resource some time later. */
  doubt(): void;
  /** A resource is to go; its intent is in the ledger. */
  deleteLater(deletion: Deletion): void;
}

/** Reports what a comparison with the service's list found: an adoption, or what an audit changed, in words. */
export function reportCompared(
  context: Pick<ActionContext, "report" | "now">,
  { id: source }: Pick<ActionSource, "id">,
  path: RelativePath,
  docId: string,
  message?: string,
): void {
  const action = message === undefined ? "adopt" : "audit";
  const facts = { source, path, from: undefined, docId, action, message } as const;
  context.report({ ...facts, atMs: context.now(), outcome: "done", durationMs: 0 });
}
