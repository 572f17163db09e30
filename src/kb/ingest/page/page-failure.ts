import { foreignKind } from "../../../lib/capped/foreign.ts";
import { MarkupTooDeep } from "../../../lib/markup/tree.ts";

/** Why a page gave no text. */
export type PageFailure = "memory" | "broken" | "unable" | "deep";

/** What was thrown over a page, here or in the child process. */
export function pageFailureOf(error: unknown): PageFailure {
  if (error instanceof MarkupTooDeep) return "deep";
  const kind = foreignKind(error);
  if (kind === "machine") return "unable";
  return kind === "damaged" ? "broken" : kind;
}
