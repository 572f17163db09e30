import type { Scored } from "../../lib/retrieval-figures.ts";
import type { Question } from "./questions.ts";

/** A passage that a search returned. */
export interface Passage {
  /** Path of its file below the source; null for a document that this state folder does not know. */
  readonly path: string | null;
  readonly score: number;
}

/** Result of a question. */
export interface Outcome extends Scored {
  readonly question: Question;
  /** Time of the search; null if it failed. */
  readonly ms: number | null;
  /** The first passages, best first. */
  readonly came: readonly Passage[];
  /** Why there is no result, or why there can be none: the request's failure, or a file that is not synced. */
  readonly problem: string | null;
}
