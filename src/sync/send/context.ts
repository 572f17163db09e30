import type { Activity } from "../ledger/activity.ts";
import type { Agenda } from "../daemon/agenda/agenda.ts";
import type { readDocument } from "../scan/read/read.ts";
import type { SecretCheck } from "../scan/read/secret-check.ts";
import type { CreateIntent } from "../ledger/intents/creates.ts";
import type { Deletion } from "../ledger/intents/deletes.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Signature } from "../plan/marker.ts";
import type { RelativePath } from "../plan/model.ts";
import type { YieldSlot } from "./queue/queue.ts";
import type { ContentKind } from "./remote/request-limit.ts";
import type { Remote } from "./remote/remote.ts";
import type { Rules } from "../scan/rules/rules.ts";
import type { Timing } from "../plan/timing.ts";
import type { Trash } from "../ledger/trash/trash.ts";
import type { Capabilities } from "./capabilities.ts";
import type { Collections } from "./collections.ts";

/** Dependencies that all actions share. */
export interface ActionContext {
  readonly ledger: Ledger;
  readonly remote: Remote;
  readonly collections: Collections;
  readonly capabilities: Omit<Capabilities, "learn">;
  readonly read: typeof readDocument;
  /** Checks a document before it leaves; undefined: files with secrets are sent. */
  readonly secretCheck: SecretCheck | undefined;
  /** Stores the texts of deleted files; undefined: they are not saved. */
  readonly trash?: Trash | undefined;
  readonly now: () => number;
  readonly timing: Timing;
  /** In [0, 1). */
  readonly random: () => number;
  /** Ends requests in flight. The daemon's stop gives them time first. */
  readonly signal: AbortSignal;
  /**
   * Runs a wait without occupying the slot, so that other files are sent meanwhile. Outside of the queue it just waits.
   */
  readonly yieldSlot: YieldSlot;
  /** Called when the service reads the pictures of a followed file, and has read all else of it. Default: not reported. */
  readonly onPictures?: () => void;
  /** Kind of the requests that carry a document. */
  readonly contentKind: ContentKind;
  /** Called for every step of a check of the folder, however small. Distinguishes work from a hang. */
  readonly moved: () => void;
  /** Notified of every action that was done or given up for now. */
  readonly report: (activity: Activity) => void;
}

/** What actions ask and record of the paths of their source. */
export type SentPaths = Pick<Agenda, "checkAgain" | "checkTorn" | "rereadAt" | "isOutdated" | "sent">;

/** Dependencies of actions on their source. */
export interface ActionSource {
  readonly id: number;
  /** Absolute path of the folder. */
  readonly root: string;
  readonly rules: Rules;
  /** The tags of source and writer in the markers of its resources. */
  readonly signature: Signature;
  /** Identifies the rules for a path, as `rulesKeysOf` gives it. */
  readonly rulesKey: (path: RelativePath) => number;
  /**
   * Reports whether work on the path is not sent any more, because something happened there since it was planned. It is
   * then dropped and planned again. False for a file that never rests.
   */
  isStale(path: RelativePath): boolean;
  /** Its paths: what happened at them, and when they are checked again. */
  readonly agenda: SentPaths;
  /** Reports whether nothing may be sent for the source. */
  isPaused(): boolean;
  /**
   * Called when a row's resource turned out to be gone. Reports whether it may be created again at once. If not, the
   * whole source is checked after the service's list has shown whether most are gone.
   */
  mayRecreate(docId: string): boolean;
  /** Finds out from the list whether a create took effect. `unclear`: the list lacks what the service has. */
  findCreated(intent: CreateIntent): Promise<"adopted" | "absent" | "unclear">;
  /**
   * Called when the service may still do what it did not answer, or answered falsely. A comparison some time later finds
   * the marker of an earlier version, a second resource of a file, and one that was deleted.
   */
  compareLater(): void;
  /** Deletes a resource whose intent is in the ledger. */
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
