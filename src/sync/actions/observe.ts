import { hash } from "node:crypto";
import type { SourceDocument } from "../document/read.ts";
import type { Observed } from "../ledger/files.ts";

/** 128 bits of a SHA-256 in 22 characters: nobody gains by a collision here, and chance makes none. */
const DIGEST_CHARS = 22;

/** Stands for a title and description together. */
export function labelOf(title: string, description: string): string {
  return hash("sha256", `${title}\0${description}`, "base64url").slice(0, DIGEST_CHARS);
}

/**
 * Digest of a text as a service keeps it. Services differ in what they do to line ends and to space around a text;
 * what they give back must still be recognised.
 */
export function digestOf(content: string): string {
  const plain = content.includes("\r") ? content.replaceAll("\r\n", "\n") : content;
  return hash("sha256", plain.trim(), "base64url").slice(0, DIGEST_CHARS);
}

/** What the ledger will say of a document once the service acknowledged it. */
export function observe(document: SourceDocument, rulesKey: number): Observed {
  const { recipe } = document;
  return {
    entry: document.entry,
    rulesKey,
    hash: document.hash,
    digest: document.kind === "content" ? digestOf(document.content) : "",
    title: recipe.title,
    label: labelOf(recipe.title, recipe.description),
    extractorVersion: recipe.extractorVersion,
    shape: { kind: recipe.kind, tier: recipe.tier, ownerId: recipe.ownerId, settings: recipe.settings },
    fileUrl: document.kind === "link" ? document.url : undefined,
  };
}
