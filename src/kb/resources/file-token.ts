import type { KnowledgeBase } from "./knowledge-base.ts";

/** Does work that reads the uploaded file behind an address, and notes that a resource uses it: until then it stays. */
export function usingFile<T>(
  kb: KnowledgeBase,
  given: string | null | undefined,
  work: () => Promise<T>,
): Promise<T> {
  const token = fileTokenOf(kb, given);
  return token === null ? work() : kb.files.use(token, work);
}

/** The token of an uploaded file by its address; null for an address elsewhere, and for none. */
export function fileTokenOf(kb: KnowledgeBase, given: string | null | undefined): string | null {
  const url = given === null || given === undefined ? null : URL.parse(given);
  if (url === null) return null;
  const address = kb.addresses.classify(url);
  return address.kind === "token" ? address.token : null;
}
