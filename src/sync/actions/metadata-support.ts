import { KbsyncError } from "../../lib/failure.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Remote } from "../remote/remote.ts";

/**
 * Reports whether the service takes the metadata of files. It says so where it names the collections. The ledger stores its
 * last answer, which holds while the service is unreachable.
 */
export interface MetadataSupport {
  isOffered(): boolean;
  /**
   * Asks the service if its last answer is old. The service may leave the question open. Asks nothing while the ids of the
   * collections are unknown: they come with the answer.
   */
  askAgain(signal: AbortSignal): Promise<void>;
  /** Records what the service reports by itself; undefined: it names no collections, which leaves the question open. */
  learn(takes: boolean | undefined): void;
  /** The listener is notified when the service begins to take metadata: every file must be checked again. */
  onBegin(listener: () => void): void;
  /** Reports that the service refused metadata that it offers to take, once per process. */
  refused(path: string, message: string): void;
}

/** An answer that did not come is asked for again this soon. */
const RETRY_MS = 600_000;

/**
 * Opens it with what the ledger says. `hasIds` reports whether the ids of the collections are known, `now` a monotonic time,
 * `nowMs` the time of day. `againMs` is the time after which an answer is old; Infinity: it never asks.
 */
export function openMetadataSupport(
  ledger: Pick<Ledger, "note" | "write"> & {
    readonly sources: Pick<
      Ledger["sources"],
      "takesMetadata" | "setTakesMetadata" | "metadataAskedMs" | "setMetadataAskedMs"
    >;
  },
  remote: Pick<Remote, "collections">,
  {
    hasIds,
    now,
    nowMs,
    againMs,
    onWarning,
  }: {
    readonly hasIds: () => boolean;
    readonly now: () => number;
    readonly nowMs: () => number;
    readonly againMs: number;
    readonly onWarning: (error: Error) => void;
  },
): MetadataSupport {
  const listeners: (() => void)[] = [];
  let known = ledger.sources.takesMetadata();
  let askedMs = ledger.sources.metadataAskedMs();
  let isWarned = false;
  let triedMs = -Infinity;
  let asking: Promise<unknown> | undefined;
  const hasTriedLately = (): boolean => now() - triedMs < Math.min(againMs, RETRY_MS);
  const note = async (takes: boolean): Promise<void> => {
    await ledger.write(() => ledger.sources.setTakesMetadata(takes));
    if (takes) for (const listener of listeners) listener();
  };
  /** A time in the future dates from before the clock was set back. */
  const isOld = (): boolean => {
    const ageMs = nowMs() - (askedMs ?? -Infinity);
    return ageMs < 0 || ageMs >= againMs;
  };

  return {
    isOffered: () => known,
    askAgain: async (signal) => {
      if (asking === undefined && (againMs === Infinity || !hasIds() || !isOld() || hasTriedLately())) return;
      triedMs = now();
      // While the service is unreachable the request waits: one is enough.
      asking ??= remote.collections(signal).finally(() => (asking = undefined));
      await asking;
    },
    learn: (takes) => {
      if (againMs !== Infinity) {
        const atMs = nowMs();
        askedMs = atMs;
        ledger.note(() => ledger.sources.setMetadataAskedMs(atMs));
      }
      // Whatever answers in the service's place for a moment names no collections either.
      if (takes === undefined || takes === known) return;
      known = takes;
      // A failed write ends the daemon by itself.
      note(takes).catch(() => undefined);
    },
    onBegin: (listener) => {
      listeners.push(listener);
    },
    refused: (path, message) => {
      if (isWarned) return;
      isWarned = true;
      onWarning(
        new KbsyncError(`the service refuses the metadata of ${path}, which is sent without it: ${message}`, {
          code: "metadata_refused",
          subject: path,
          retryable: false,
          hint: "Filters do not find it by its metadata. Refusals of other files are not reported before the next start.",
        }),
      );
    },
  };
}
