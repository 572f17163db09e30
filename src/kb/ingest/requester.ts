import type { WorkOptions } from "../../lib/gate.ts";
import type { Requester } from "./extract/extract.ts";

/** Returns the gate options of a tenant's work that holds `heldChars` characters in memory while it waits. */
export function gateOptions(
  { tenant, rank, signal, whileWaiting }: Omit<Requester, "lane"> = {},
  heldChars: number,
): WorkOptions {
  return {
    path: tenant,
    rank,
    signal,
    whileWaiting: whileWaiting && ((wait) => whileWaiting(wait, heldChars, "text")),
  };
}
