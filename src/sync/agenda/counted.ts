import type { FileState } from "../plan/model.ts";

/**
 * How the ledger's row of a planned file counts, so that no file is counted twice: as one in agreement (an older
 * version of it), as one in trouble or unsure, or as nothing, if it has no row or was left out.
 */
export type Counted = "agreed" | "trouble" | "nothing";

/** Returns how a row of this state counts; undefined: there is none. */
export function countedAs(state: FileState | undefined): Counted {
  switch (state) {
    case "agreed":
      return "agreed";
    case "failed":
    case "parked":
    case "unsure":
      return "trouble";
    case "held":
    case "doomed":
    case "skipped":
    case undefined:
      return "nothing";
  }
}
