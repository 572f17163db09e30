import { hash } from "node:crypto";
import { DIGEST_CHARS } from "../document/digest.ts";
import type { SourceDocument } from "../document/read.ts";
import type { Observed } from "../ledger/files.ts";

/** Stands for a title and description together. */
export function labelOf(title: string, description: string): string {
  return hash("sha256", `${title}\0${description}`, "base64url").slice(0, DIGEST_CHARS);
}

/** What the ledger will say of a document once the service acknowledged it. */
export function observe(document: SourceDocument, rulesKey: number): Observed {
  const { recipe } = document;
  return {
    entry: document.entry,
    rulesKey,
    hash: document.hash,
    digest: document.kind === "content" ? document.digest : "",
    title: recipe.title,
    label: labelOf(recipe.title, recipe.description),
    extractorVersion: recipe.extractorVersion,
    shape: { kind: recipe.kind, tier: recipe.tier, ownerId: recipe.ownerId, settings: recipe.settings },
    fileUrl: document.kind === "link" ? document.url : undefined,
  };
}
