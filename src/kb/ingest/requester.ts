import type { WorkOptions } from "../../lib/gate.ts";
import type { Requester } from "./extract/extract.ts";

/** Returns the gate options of a tenant's work that holds `heldChars` characters in memory while it waits. */
export function gateOptions(
  { tenant, signal, whileWaiting }: Pick<Requester, "tenant" | "signal" | "whileWaiting"> = {},
  heldChars: number,
): WorkOptions {
  return {
    path: tenant,
    signal,
    whileWaiting: whileWaiting && ((wait) => whileWaiting(wait, heldChars)),
  };
}
