import type { KnowledgeBase } from "./knowledge-base.ts";

/** The token of an uploaded file by its address; null for an address elsewhere, and for none. */
export function fileTokenOf(kb: KnowledgeBase, given: string | null | undefined): string | null {
  const url = given === null || given === undefined ? null : URL.parse(given);
  if (url === null) return null;
  const place = kb.addresses.place(url);
  return place.kind === "token" ? place.token : null;
}
