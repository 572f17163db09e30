import type { WorkOptions } from "../../lib/gate.ts";
import type { Behalf } from "./extract/extract.ts";

/** How work that is done for somebody waits in a gate, with so many characters of its text in memory. */
export function gateOptions({ tenant, whileWaiting }: Behalf = {}, heldChars: number): WorkOptions {
  return {
    path: tenant,
    whileWaiting: whileWaiting && ((wait) => whileWaiting(wait, heldChars)),
  };
}
