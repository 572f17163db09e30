import { messageOf } from "../failure.ts";
import { isMachineFailure, isOutOfMemory } from "./child.ts";

/**
 * The kind of an error that a library threw on a document. Its message is for the log only: it may quote the document or
 * name the library's internals.
 */
export type ForeignKind =
  /** An allocation failed. */
  | "memory"
  /** The document is nested deeper than the library's stack allows. */
  | "deep"
  /** The machine or the program failed, which says nothing about the document. */
  | "machine"
  /** Everything else: the document is broken, or the library failed on it. */
  | "damaged";

/** Classifies an error of a library. Every document reader uses it for errors it did not throw itself. */
export function foreignKind(error: unknown): ForeignKind {
  const message = messageOf(error);
  if (isOutOfMemory(message)) return "memory";
  if (/call stack size exceeded|too much recursion/i.test(message)) return "deep";
  return isMachineFailure(error) ? "machine" : "damaged";
}
