import { messageOf } from "../failure.ts";
import { isMachineFailure, isOutOfMemory } from "./child.ts";

/**
 * What an error that a library threw over a document says, by kind: its words are for the log alone, for they quote the
 * document, or speak of the library's own variables.
 */
export type ForeignKind =
  /** Memory was refused. */
  | "memory"
  /** The parts of the document are nested deeper than the library's stack. */
  | "deep"
  /** The machine or the program failed: nothing is known of the document. */
  | "machine"
  /** All else: the library found the document broken, or broke over it. */
  | "damaged";

/** The kind of such an error. Every reader of documents asks this for what it did not throw itself. */
export function foreignKind(error: unknown): ForeignKind {
  const words = messageOf(error);
  if (isOutOfMemory(words)) return "memory";
  if (/call stack size exceeded|too much recursion/i.test(words)) return "deep";
  return isMachineFailure(error) ? "machine" : "damaged";
}
