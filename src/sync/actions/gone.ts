import { setTimeout as sleep } from "node:timers/promises";
import type { Later } from "../remote/answer.ts";
import type { ActionContext } from "./context.ts";

/** Decides whether a resource is gone after a request for it was answered with 404. */
export interface GoneCheck {
  /**
   * Call it for each 404 to the same request. `again`: the 404 may be false, send the request again. `deleted`: the
   * resource's own record confirms it. A `Later`: the service reports that the resource exists, and does not let it be
   * changed.
   */
  judge(): Promise<"gone" | "deleted" | "again" | Later>;
}

/**
 * Opens the check of one resource for one job. Other files are sent while it waits. `foundMs` counts as the time when
 * the resource was made if the ledger does not know that time.
 */
export function openGoneCheck(
  {
    ledger,
    remote,
    yieldSlot,
    signal,
    timing,
  }: Pick<ActionContext, "ledger" | "remote" | "yieldSlot" | "signal" | "timing">,
  docId: string,
  foundMs = -Infinity,
): GoneCheck {
  let answers = 0;
  /**
   * Returns how long a replica may still not know the resource; undefined: it was made long ago, or before a clock that
   * was set back.
   */
  const unknownMs = (): number | undefined => {
    ledger.flush();
    const ageMs = Date.now() - (ledger.activity.madeMs(docId) ?? foundMs);
    return ageMs >= 0 && ageMs < timing.knownAfterMs ? timing.knownAfterMs - ageMs : undefined;
  };
  return {
    judge: async () => {
      const isLast = answers === timing.goneAgainMs.length;
      const waitMs = isLast ? unknownMs() : timing.goneAgainMs[answers];
      answers += 1;
      const record = await remote.read(docId, signal);
      // A 404 to this request proves nothing: a service need not have such an address.
      const isThere = record.kind === "done" && !record.value.isDeleted;
      if (record.kind === "done" && !isThere) return "deleted";
      if (waitMs === undefined) return isThere ? CONTRADICTION : "gone";
      await yieldSlot(() => sleep(waitMs, undefined, { signal }));
      return "again";
    },
  };
}

const CONTRADICTION: Later = {
  kind: "later",
  acted: "no",
  blame: "request",
  reason: "the service shows the resource, but answers 404 when it is changed",
};
