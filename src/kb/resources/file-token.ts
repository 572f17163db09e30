import type { KnowledgeBase } from "./knowledge-base.ts";

/** Runs work that reads the uploaded file at an address and records its use by a resource. The file is not removed meanwhile. */
export function usingFile<T>(
  kb: KnowledgeBase,
  given: string | null | undefined,
  work: () => Promise<T>,
): Promise<T> {
  const token = fileTokenOf(kb, given);
  return token === null ? work() : kb.files.hold(token, work);
}

/** Returns the token of an uploaded file by its address; null for a foreign address, and for none. */
export function fileTokenOf(kb: KnowledgeBase, given: string | null | undefined): string | null {
  const url = given === null || given === undefined ? null : URL.parse(given);
  if (url === null) return null;
  const address = kb.addresses.classify(url);
  return address.kind === "token" ? address.token : null;
}
