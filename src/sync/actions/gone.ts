import { setTimeout as sleep } from "node:timers/promises";
import type { Later } from "../remote/answer.ts";
import type { ActionContext } from "./context.ts";

/** Whether a resource is gone of which a request was told so. */
export interface GoneCheck {
  /**
   * To be called at each 404 to the same request. `again`: it may be false, send the request again. `deleted`: its own record
   * says so, too. A `Later`: the service says that the resource exists, and does not let it be changed.
   */
  judge(): Promise<"gone" | "deleted" | "again" | Later>;
}

/** Opens the check of one resource for one piece of work. Other files are sent while it waits. */
export function openGoneCheck(
  {
    ledger,
    remote,
    yieldSlot,
    signal,
    timing,
  }: Pick<ActionContext, "ledger" | "remote" | "yieldSlot" | "signal" | "timing">,
  docId: string,
): GoneCheck {
  let answers = 0;
  /** How long a replica may still not know the resource; undefined: it was made long ago, or before a clock that was set back. */
  const unknownMs = (): number | undefined => {
    ledger.flush();
    const ageMs = Date.now() - (ledger.activity.madeMs(docId) ?? -Infinity);
    return ageMs >= 0 && ageMs < timing.knownAfterMs ? timing.knownAfterMs - ageMs : undefined;
  };
  return {
    judge: async () => {
      const isLast = answers === timing.goneAgainMs.length;
      const waitMs = isLast ? unknownMs() : timing.goneAgainMs[answers];
      answers += 1;
      const record = await remote.read(docId, signal);
      // A 404 to this question says nothing: a service need not have such an address.
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
  reason: "the service shows the resource, and says that there is none when it is to be changed",
};
