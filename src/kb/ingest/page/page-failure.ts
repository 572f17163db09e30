import { foreignKind } from "../../../lib/capped/foreign.ts";
import { MarkupTooDeep } from "../../../formats/markup/tree.ts";

/** Why a page yields no text. */
export type PageFailure = "memory" | "broken" | "unable" | "deep";

/** Classifies an error of reading a page, in place or in the child process. */
export function pageFailureOf(error: unknown): PageFailure {
  if (error instanceof MarkupTooDeep) return "deep";
  const kind = foreignKind(error);
  if (kind === "machine") return "unable";
  return kind === "damaged" ? "broken" : kind;
}
